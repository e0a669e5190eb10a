"""What a check of the annotations found: warnings, and how many items they are worth."""

from __future__ import annotations

import math
from typing import Any

from hocal._base.errors import InputError
from hocal.report.schema import Check, CheckFinding

__all__ = ["design_effect", "is_dependent", "read_check"]


def read_check(check: Any) -> Check | None:
    """Return the findings of an AnnotationCheck or of its dict; single annotators stay out."""
    if check is None:
        return None
    content = check.as_dict() if hasattr(check, "as_dict") else check
    try:
        return {
            "n_judgements": content["n_judgements"],
            "n_items": content["n_items"],
            "n_annotators": content["n_annotators"],
            "design_effect": _read_effect(content.get("sharing")),
            "findings": [_read_finding(finding) for finding in content["findings"]],
        }
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        lack = f" without {error}" if isinstance(error, KeyError) else ""
        raise InputError(
            "check",
            "must be an AnnotationCheck or its as_dict(), which `hocal check --json` prints",
            value=f"{type(check).__name__}{lack}",
        ) from error


def is_dependent(check: Check | None) -> bool:
    """Tell whether a check warned of more than people who judged an item twice."""
    found = [] if check is None else check["findings"]
    return any(
        finding["severity"] == "warning" and finding["topic"] != "repeats" for finding in found
    )


def design_effect(check: Check | None) -> float:
    """Return how many items are worth one independent item: 1 where nothing warns of less."""
    if check is None or not is_dependent(check):
        return 1.0
    return max(check["design_effect"] or 1.0, 1.0)


def _read_effect(sharing: Any) -> float | None:
    """Return the estimated design effect; None where it could not be told."""
    effect = None if sharing is None else sharing["design_effect"]
    if effect is None:
        return None
    return float(effect) if math.isfinite(effect) else None


def _read_finding(finding: Any) -> CheckFinding:
    return {
        "topic": str(finding["topic"]),
        "severity": str(finding["severity"]),
        "message": str(finding["message"]),
        "action": str(finding["action"]),
    }
