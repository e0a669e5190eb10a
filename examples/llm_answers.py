"""Learn from sampled answers of a language model what is ambiguous and what a small model lacks.

A small, cheap classifier sorts support tickets into teams. A large language model sorts them better
but costs more, so it is asked about a part of the tickets only, five times each. Its answers are
labels: where they differ, the ticket is ambiguous and no classifier can be sure (aleatoric); where
they agree and the small model doubts, the small model does not know (epistemic), and the large one
is worth asking.

No language model is at hand here: a simulated one draws its answers from known distributions, so
that the result can be held against the truth. The part to replace by your own tickets, classifier
and language model comes first.
"""

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import hocal

N_TICKETS = 6_000
N_ASKED = 1_500
N_ANSWERS = 5

# Replace from here ...

TEAMS = ["billing", "shipping", "technical"]
WORDS = {
    "billing": ["invoice", "refund", "charged", "payment", "receipt"],
    "shipping": ["parcel", "courier", "delivery", "address", "arrived"],
    "technical": ["crash", "login", "password", "update", "screen"],
}
SHARES = {"clear": 0.6, "vague": 0.2, "coded": 0.2}


def write_tickets(
    n_tickets: int, generator: np.random.Generator
) -> tuple[pd.DataFrame, np.ndarray]:
    """Simulate tickets (ticket, text, kind) and the distribution of the large model's answers.

    Clear tickets speak of one team's matters; vague ones of two, and the answer could be either;
    coded ones give a product code, which the large model knows and the small one has never seen.
    """
    kinds = generator.choice(list(SHARES), n_tickets, p=list(SHARES.values()))
    texts = []
    answers = np.full((n_tickets, len(TEAMS)), 0.01)
    for ticket, kind in enumerate(kinds):
        first, second = generator.choice(len(TEAMS), 2, replace=False)
        mentioned = [first, first, second, second] if kind == "vague" else [first] * 4
        words = [generator.choice(WORDS[TEAMS[team]]) for team in mentioned]
        texts.append(f"code {generator.integers(10**6):06}" if kind == "coded" else " ".join(words))
        answers[ticket, mentioned] += 1
    table = pd.DataFrame({"ticket": np.arange(n_tickets), "text": texts, "kind": kinds})
    return table, answers / answers.sum(axis=1, keepdims=True)


def ask_large_model(
    tickets: np.ndarray, answers: np.ndarray, generator: np.random.Generator
) -> pd.DataFrame:
    """Simulate the log of a language model: one row per answer, in its own words.

    Ask in separate calls at the temperature that you use otherwise: the guarantees need answers
    that are independent given the question, and a second answer in the same conversation is not.
    """
    rows = []
    for ticket in tickets:
        for call, team in enumerate(generator.choice(len(TEAMS), N_ANSWERS, p=answers[ticket])):
            refused = generator.random() < 0.01
            rows.append(
                (ticket, call, "I cannot tell." if refused else f"{TEAMS[team].capitalize()}.")
            )
    return pd.DataFrame(rows, columns=["ticket", "call", "answer"])


def ask_small_model(tickets: pd.DataFrame, generator: np.random.Generator) -> np.ndarray:
    """Train a bag of words on single answers to other tickets; return probabilities for these."""
    past, past_answers = write_tickets(2_000, generator)
    labels = [generator.choice(len(TEAMS), p=p) for p in past_answers]
    model = make_pipeline(CountVectorizer(), LogisticRegression()).fit(past["text"], labels)
    return model.predict_proba(tickets["text"])


# ... to here.


def main() -> None:
    """Print what each kind of ticket turns out to be, and which tickets stand out."""
    generator = np.random.default_rng(0)
    tickets, answers = write_tickets(N_TICKETS, generator)
    probabilities = ask_small_model(tickets, generator)
    log = ask_large_model(generator.choice(N_TICKETS, N_ASKED, replace=False), answers, generator)
    print(log.head(6).to_string(index=False))

    # From words to labels. Refusals are no label; they are dropped because we say so.
    log["team"] = log["answer"].str.strip(".").str.lower()
    labels = hocal.count_labels(
        log, item="ticket", label="team", annotator="call", classes=TEAMS, unknown="drop"
    )
    print(f"\n{labels.counts.sum()} answers about {len(labels.items)} tickets")

    # Rows of the counts follow `labels.items`; predictions must come in the same order.
    # Five slices of confidence for each team: enough tickets in each to prove something.
    calibrator = hocal.SnapshotCalibrator(hocal.TopLabelPartition(n_slices=5))
    calibrator.fit(probabilities[labels.items], labels.counts)

    # Every other ticket costs nothing more: it gets the uncertainty of the tickets that the small
    # model predicts alike.
    others = np.setdiff1d(tickets["ticket"], labels.items)
    parts = calibrator.decompose(probabilities[others])
    show_kinds(tickets["kind"].to_numpy()[others], parts, answers[others])
    certificate = calibrator.certify(confidence=0.95)
    cells = calibrator.partition_.assign(probabilities[others])
    texts = tickets["text"].to_numpy()[others]
    for title, quantity in (
        ("Ambiguous", "aleatoric"),
        ("Worth asking the large model", "epistemic"),
    ):
        lower, upper = certificate.interval(quantity)
        print(
            f"\n{title}: the most {quantity} uncertainty, "
            "with what five answers prove about tickets like it"
        )
        for row in np.argsort(-parts.as_dict()[quantity], kind="stable")[:3]:
            interval = f"[{lower[cells[row]]:.2f}, {upper[cells[row]]:.2f}]"
            print(f"  {parts.as_dict()[quantity][row]:.2f} nats, 95% {interval}   {texts[row]}")
    error = hocal.aleatoric_error(parts, label_distributions=answers[others], cells=cells)
    print(f"\nMean distance from the true aleatoric uncertainty: {error:.3f} nats.")


def show_kinds(kinds: np.ndarray, parts: hocal.Decomposition, answers: np.ndarray) -> None:
    """Print estimated and true uncertainty of each kind of ticket, in nats."""
    known = hocal.decompose(hocal.Mixtures.from_points(answers)).aleatoric
    print(
        f"\n{'kind':8}{'tickets':>8}{'predictive':>12}"
        f"{'aleatoric':>11}{'(truth)':>9}{'epistemic':>11}"
    )
    for kind in SHARES:
        of = kinds == kind
        means = [
            values[of].mean()
            for values in (parts.predictive, parts.aleatoric, known, parts.epistemic)
        ]
        print(
            f"{kind:8}{of.sum():8}{means[0]:12.3f}{means[1]:11.3f}{means[2]:9.3f}{means[3]:11.3f}"
        )


if __name__ == "__main__":
    main()
