"""Say a summary of labels in plain words, for the page and for Markdown alike."""

from __future__ import annotations

from hocal.report.label_schema import Forecast, LabelItem, LabelSummary, Limits, People
from hocal.report.words import Finding, counted, fixed, list_labels, percent, whole

__all__ = [
    "about_agreement",
    "about_annotators",
    "about_confusions",
    "about_forecast",
    "about_item",
    "about_items",
    "about_labels_data",
    "about_trust_in_labels",
    "limits",
]

FEW_PEOPLE = 10  # fewer annotators are hardly a sample of people
FEW_ITEMS = 200  # fewer leave the prior, and so the items' limits, unsure
SEVERAL_NAMED = 5  # dissenters that a sentence names


def limits(value: Limits, *, digits: int = 2) -> str:
    """Return an estimate with its limits."""
    ends = f"{fixed(value['lower'], digits)} to {fixed(value['upper'], digits)}"
    return f"{fixed(value['estimate'], digits)} ({ends})"


def about_labels_data(summary: LabelSummary) -> str:
    """Say what was looked at."""
    data = summary["data"]
    each = whole(data["fewest_labels"])
    if data["most_labels"] > data["fewest_labels"]:
        each += f" to {whole(data['most_labels'])}"
    people = summary["people"]
    who = "" if people is None else f" by {_people(people['n_annotators'])}"
    items = counted(data["n_items"], "item")
    labels = counted(data["n_labels"], "label")
    classes = counted(data["n_classes"], "class", "classes")
    return f"{items} in {classes}, {labels}{who}, {each} for each item."


def _people(number: int) -> str:
    return counted(number, "person", "people")


def about_agreement(summary: LabelSummary) -> list[str]:
    """Say how much people agree."""
    part = summary["agreement"]
    pairs = part["pairs"]
    if pairs["estimate"] is None:
        return [
            "No item has two labels: how often people agree is not known. "
            "Get a second label for some of the items."
        ]
    lower = percent(pairs["lower"]).rstrip("%")
    sentence = (
        f"Two people agree about an item in {percent(pairs['estimate'])} of cases "
        f"(limits {lower} to {percent(pairs['upper'])})."
    )
    kind = "ordinal" if part["ordinal"] else "nominal"
    beyond = (
        f"Beyond chance, where 0 is what labels of different items do and 1 is perfect: Fleiss' "
        f"kappa {limits(part['kappa'])}, Krippendorff's {kind} alpha {limits(part['alpha'])}."
    )
    held = f"Limits hold with confidence {percent(part['confidence'])}, each on its own."
    return [sentence, beyond, held]


def about_confusions(summary: LabelSummary) -> str:
    """Say which classes are given to the same items."""
    if not summary["confusions"]:
        return "No two labels of an item differ, or no item has two."
    first = summary["confusions"][0]
    return (
        "When two people disagree about an item, the two labels are "
        f"{first['first']} and {first['second']} in {percent(first['share'])} of cases."
    )


def about_annotators(summary: LabelSummary) -> list[str]:
    """Say who stands out, and what would be left without them."""
    people = summary["people"]
    if people is None:
        return ["Who judged is not known: name the column of the annotators to compare them."]
    n_found = people["n_found"]
    if not n_found:
        return [
            f"None of {_people(people['n_annotators'])} stands out beyond chance. "
            "That is no proof that all are alike: of those with few judgements little is known."
        ]
    found = (
        f"{whole(n_found)} of {_people(people['n_annotators'])} stand{'s' * (n_found == 1)} out "
        "beyond chance: they dissent more than their items explain, use classes differently, or "
        "agree more than expected, which may be copying."
    )
    return [found, *_without(people)]


def _without(people: People) -> list[str]:
    dissenters = people["dissenters"]
    if not dissenters:
        return ["Nobody dissents more than their items explain."]
    named = ", ".join(dissenters[:SEVERAL_NAMED])
    more = len(dissenters) - SEVERAL_NAMED
    gone = people["gone"]
    rest = f" and {whole(more)} more" if more > 0 else ""
    share = percent(people["dissenters_share"])
    return [
        f"Without those who dissent ({named}{rest}; {share} of the judgements), "
        f"{percent(gone['estimate'])} of all disagreement would be gone "
        f"(limits {percent(gone['lower'])} to {percent(gone['upper'])})."
    ]


def about_trust_in_labels(summary: LabelSummary) -> list[Finding]:
    """Say what the labels identify and what they do not."""
    findings = [_identified(summary), _items_known(summary)]
    people = summary["people"]
    if people is not None:
        findings.append(_sample_of_people(people))
    return findings


def _identified(summary: LabelSummary) -> Finding:
    text = (
        "People disagree about an item because it is ambiguous, or because some of them are "
        "careless. "
    )
    if summary["people"] is None:
        text += (
            "Counts alone cannot tell the two apart: all disagreement is shown as if the items "
            "were ambiguous."
        )
        return Finding("unknown", "Ambiguous items or careless people?", text)
    text += (
        "Who dissents from the others on the same items is found. Carelessness that everybody "
        "shares, and items that mislead everybody in the same way, leave no trace in labels; "
        "gold questions would show them. Items are described with all labels."
    )
    return Finding("unknown", "Ambiguous items or careless people?", text)


def _items_known(summary: LabelSummary) -> Finding:
    data = summary["data"]
    if data["most_labels"] < 2:
        text = "From one label per item nobody can tell ambiguous items: all of it is a guess."
        return Finding("caution", "One label per item", text)
    text = (
        f"{counted(data['n_open'], 'item')} with too few labels to call clear, "
        f"{whole(data['n_single'])} of which with fewer than two, "
        f"{'is' if data['n_open'] == 1 else 'are'} described mostly by what the others are like."
    )
    if data["n_open"] == 0:
        text = "No item has too few labels to tell whether people agree about it."
    if data["n_items"] < FEW_ITEMS:
        text += " With so few items, their limits are somewhat too narrow."
        return Finding("caution", "Few items", text)
    if data["n_open"] > data["n_items"] / 2:
        return Finding("caution", "Most items have too few labels to tell", text)
    return Finding("good", "Most items have labels enough to tell", text)


def _sample_of_people(people: People) -> Finding:
    number = _people(people["n_annotators"])
    if people["panel"]:
        text = (
            f"The same {number} judged everything, or nearly. They are a panel and not a sample of "
            "people: what is said about disagreement is about these, and more items do not tell "
            "what others would say."
        )
        return Finding("caution", "A fixed panel", text)
    if people["n_annotators"] < FEW_PEOPLE:
        text = f"All labels are by {number}. Others may disagree about other things."
        return Finding("caution", "Few people", text)
    text = f"{number} judged different items each, so they stand for people like them."
    return Finding("good", "Many people", text)


def about_items(summary: LabelSummary) -> list[str]:
    """Say which items are ambiguous."""
    data = summary["data"]
    spread = summary["aleatoric"]
    verdicts = (
        f"People disagree about {counted(data['n_disputed'], 'item')}. About "
        f"{whole(data['n_agreed'])} three people or more agree without exception, and "
        f"{whole(data['n_open'])} {'is' if data['n_open'] == 1 else 'are'} open: all labels are "
        "the same, and they are fewer than three."
    )
    uncertain = (
        f"The mean aleatoric uncertainty is {fixed(spread['mean'])} {summary['unit']}; a tenth of "
        f"the items have more than {fixed(spread['high'])}."
    )
    return [verdicts, uncertain]


def about_item(item: LabelItem) -> str:
    """Say what people said of an item."""
    if item["verdict"] == "agreed":
        n_labels = whole(item["n_labels"])
        return f"{n_labels} of {n_labels} people agree: {item['labels'][0][0]}"
    return list_labels(item["labels"]) or "no label"


def about_forecast(forecast: Forecast) -> list[str]:
    """Say what more labels would bring."""
    half = next(row for row in forecast["rows"] if row["per_item"] == 0.5)
    now = forecast["now"]
    text = (
        f"The squared error of the items' label distributions is expected to be {fixed(now, 4)} "
        f"now. {counted(half['budget'], 'more label')} should take it to {fixed(half['chosen'], 4)}"
        f" if they go where they help most, and to {fixed(half['evenly'], 4)} if spread evenly."
    )
    same = [row for row in forecast["rows"] if row["evenly"] <= half["chosen"]]
    if same and same[0]["per_item"] > half["per_item"]:
        text += f" Spread evenly, as much takes up to {counted(same[0]['budget'], 'label')}."
    return [text, "The command hocal next, and hocal.next_labels, say which items these are."]
