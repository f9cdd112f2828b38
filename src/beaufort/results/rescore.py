"""Rescoring of stored logits in another label space or with other label sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from beaufort.data.labels import (
    DatasetLabels,
    Grouping,
    LabelError,
    LabelSets,
    LabelSpace,
    ModelOutputs,
    find_label_space,
)
from beaufort.evaluation import predictions
from beaufort.results._match import ResultsError, Scored, scored_as
from beaufort.store import Cell, Listing, Store, without_prediction
from beaufort.store.columns import column_of, numbers_of
from beaufort.suites.conditions import Condition


def stored_space(cells: Mapping[Condition, Cell]) -> LabelSpace:
    """Return the label space in which a model's stored predictions were scored."""
    first = next(iter(cells.values()))
    return LabelSpace.from_facts(first.data.get("labels") or {})


def _logits(table: pa.Table, model: str) -> Any:
    if "logits" not in table.column_names:
        raise ResultsError(
            f"predictions of {model} were stored without logits, so they cannot be scored in another label "
            "space; run the model again in that space, or with --config keep_logits=true"
        )
    return table["logits"].combine_chunks()


@dataclass(frozen=True)
class Rescoring:
    """How the stored logits of one model are rescored."""

    space: LabelSpace
    label_sets: LabelSets | None = None

    def table(self, table: pa.Table, model: str) -> pa.Table:
        """Return the rows with new scores; the table has the columns place, id, label, top and logits.

        Logits are kept with three digits: of classes whose logits agree in these, the lower comes first.
        """
        valid = numbers_of(table["top"].is_valid())
        read, lost = table.filter(column_of(valid)), table.filter(column_of(~valid))
        column = _logits(read, model)
        logits = np.asarray(numbers_of(column.flatten()), np.float32).reshape(len(read), -1)
        ids, labels = list(map(str, read["id"].to_pylist())), numbers_of(read["label"])
        made = predictions(ids, labels, self.space.apply(logits), label_sets=self._sets(ids))
        if len(lost):
            names = list(map(str, lost["id"].to_pylist()))
            empty = without_prediction(names, numbers_of(lost["label"]), made.schema, self._sets(names))
            made = pa.concat_tables([made, empty])
        places = np.concatenate([numbers_of(read["place"]), numbers_of(lost["place"])])
        return made.add_column(0, "place", column_of(places)).take(column_of(np.argsort(places)))

    def _sets(self, ids: list[str]) -> Any:
        return None if self.label_sets is None else self.label_sets.labels(ids, self.space)


@dataclass(frozen=True)
class WantedScoring:
    """Label space, convention and label sets for scoring predictions; as stored if None."""

    labels: str | Path | Grouping | LabelSpace | None = None
    convention: str | None = None
    label_sets: LabelSets | None = None

    @property
    def rescores(self) -> bool:
        """Whether anything is wanted that may differ from what is stored."""
        return self != WantedScoring()

    def scored(self, cells: Sequence[Cell]) -> Scored | None:
        """Return the scoring of stored predictions that do not need rescoring; None if there may be none."""
        if not self.rescores or self.labels is not None:
            return None
        conventions = {scored_as(cell).convention for cell in cells} - {""}
        only = conventions.pop() if len(conventions) == 1 else ""
        return Scored(self.convention or only, "" if self.label_sets is None else self.label_sets.digest)

    def rescoring(
        self, store: Store, listing: Listing, cells: Mapping[Condition, Cell], classes: tuple[str, ...]
    ) -> Rescoring | None:
        """Return how a model's predictions are rescored; None if they are stored as requested."""
        if not self.rescores:
            return None
        cell = next(iter(cells.values()))
        space = self._space(store, listing, cell, stored_space(cells), classes)
        stored = cell.data.get("labels") or {}
        if space.facts() == {key: value for key, value in stored.items() if key != "truths"}:
            if self.label_sets is None or self.label_sets.digest == stored.get("truths"):
                return None
        elif self.label_sets is None and "truths" in stored:
            raise ResultsError("these predictions were scored by label sets; pass --labels sets=FILE")
        return Rescoring(space, self.label_sets)

    def _space(
        self, store: Store, listing: Listing, cell: Cell, stored: LabelSpace, classes: tuple[str, ...]
    ) -> LabelSpace:
        if self.labels is None and not stored.identity:
            return replace(stored, convention=self.convention or stored.convention)
        if self.labels is None and self.convention != "restricted":
            return stored
        model, table = str(cell.model["name"]), store.read(cell, listing)
        outputs = ModelOutputs(model, int(_logits(table, model).type.list_size))
        used = np.unique(numbers_of(table["label"]))
        names = classes or tuple(map(str, range(int(used.max(initial=0)) + 1)))
        data = DatasetLabels(str(cell.data["name"]), names, used.astype(np.int64))
        try:
            return find_label_space(
                data, outputs, labels=self.labels or "identity", convention=self.convention
            )
        except LabelError as error:
            raise error.without("--classes") from None
