"""Say in plain words which groups and which items are listed, and what for."""

from __future__ import annotations

from hocal._base.shares import percent
from hocal.report.schema import CellRow, Gallery, Standing, Summary
from hocal.report.words import counted, fixed, whole

__all__ = ["about_gallery", "about_items", "about_leader", "about_leaders", "no_leader"]


def about_leaders(summary: Summary) -> str:
    """Say what a group must be like to be listed, or that none is."""
    if any(summary["leaders"].values()):
        return (
            "A group of items with alike predictions is listed if the labels prove that it has "
            "more than the average: even its lower limit does. Groups come by their items times "
            "what they have above the average."
        )
    return "No group of items with alike predictions differs from the others, as far as is proved."


def about_leader(cell: CellRow, standing: Standing) -> str:
    """Say by how much a group exceeds the average, and what is proved."""
    items = counted(cell["n_items"], "item")
    excess = fixed(cell["aleatoric_excess"])
    ends = cell["aleatoric_interval"]
    if standing == "epistemic":
        excess = fixed(cell["epistemic_excess"])
        ends = cell["epistemic_interval"]
    least = fixed(ends[0]) if ends else "-"
    return f"{items}, {excess} above the average; proved for the group: at least {least}"


def no_leader(summary: Summary, standing: Standing) -> str:
    """Say that no group differs from the others."""
    average = fixed(summary["parts"][standing]["mean"])
    return f"No group differs from the others: no lower limit exceeds the average, {average} nats."


def about_items(summary: Summary) -> str:
    """Say which items are listed, and what their numbers mean."""
    data = summary["data"]
    text = (
        f"Showing {whole(len(summary['items']))} of {counted(data['n_items'], 'item')}: those with "
        "the most of each kind of uncertainty, and those about which one more label would tell the "
        "most. Epistemic is what the model does not know. Aleatoric is how much people disagree, "
        f"with limits that hold it with {percent(summary['trust']['certificate']['confidence'])} "
        "probability"
    )
    if any(item["n_labels"] for item in summary["items"]):
        text += (
            ", given the labels of the item itself; left is what is still not known with them. "
            "An item that everybody agrees on is never among the most aleatoric"
        )
    return text + ". The gain is the expected fall of the squared error of what people say."


def about_gallery(gallery: Gallery) -> str:
    """Say how many items of how many are shown."""
    kind = gallery["standing"]
    least = fixed(gallery["least"], 2)
    agreed = " that people do not agree on" if kind == "aleatoric" else ""
    if not gallery["cards"]:
        return f"No item{agreed} has {least} nats or more of {kind} uncertainty."
    items = counted(gallery["n_items"], "item")
    return (
        f"Showing {whole(len(gallery['cards']))} of {items}{agreed} with {least} nats or more of "
        f"{kind} uncertainty, the most {kind} first."
    )
