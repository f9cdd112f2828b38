"""Answers scored again, in another label space or by other truths, from the logits that were kept."""

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
    check_convention,
    find_space,
    read_label_sets,
)
from beaufort.results._match import ResultsError, Scored, scored_as
from beaufort.store import Cell, Listing, Store, predictions, without_prediction
from beaufort.store.columns import column_of, numbers_of
from beaufort.suites.conditions import Condition


def stored_space(cells: Mapping[Condition, Cell]) -> LabelSpace:
    """The label space in which a model's answers were scored when they were stored."""
    first = next(iter(cells.values()))
    return LabelSpace.from_facts(first.data.get("labels") or {})


def _no_logits(model: str) -> ResultsError:
    return ResultsError(
        f"answers of {model} can be scored in another label space if all their logits were kept, got answers "
        "without; run it again in that space, or with --config keep_logits=true"
    )


@dataclass(frozen=True)
class Rescoring:
    """How the stored logits of one model are scored again."""

    space: LabelSpace
    truths: LabelSets | None = None

    def table(self, table: pa.Table, model: str) -> pa.Table:
        """The same rows with new scores; the table has the columns place, id, label, top and logits.

        Logits are kept with three digits: of classes whose logits agree in these, the lower comes first.
        """
        if "logits" not in table.column_names:
            raise _no_logits(model)
        read = numbers_of(table["top"].is_valid())
        answered, lost = table.filter(column_of(read)), table.filter(column_of(~read))
        column: Any = answered["logits"].combine_chunks()
        logits = np.asarray(numbers_of(column.flatten()), np.float32).reshape(len(answered), -1)
        ids, labels = list(map(str, answered["id"].to_pylist())), numbers_of(answered["label"])
        made = predictions(ids, labels, self.space.apply(logits), truth=self._truth(ids))
        if len(lost):
            names = list(map(str, lost["id"].to_pylist()))
            empty = without_prediction(names, numbers_of(lost["label"]), made.schema, self._truth(names))
            made = pa.concat_tables([made, empty])
        places = np.concatenate([numbers_of(answered["place"]), numbers_of(lost["place"])])
        return made.add_column(0, "place", column_of(places)).take(column_of(np.argsort(places)))

    def _truth(self, ids: list[str]) -> Any:
        return None if self.truths is None else self.truths.labels(ids, self.space)


@dataclass(frozen=True)
class Wanted:
    """In which space, by which convention and which truths answers are to be scored; as stored if None."""

    labels: str | Path | Grouping | LabelSpace | None = None
    convention: str | None = None
    truths: LabelSets | None = None

    @classmethod
    def of(
        cls,
        labels: str | Path | Grouping | LabelSpace | None,
        convention: str | None,
        truths: str | Path | LabelSets | None,
    ) -> Wanted:
        """From the arguments of `open_results`."""
        if convention is not None:
            check_convention(convention)
        read = truths if truths is None or isinstance(truths, LabelSets) else read_label_sets(truths)
        return cls(labels, convention, read)

    @property
    def anew(self) -> bool:
        """Whether anything is wanted that may differ from what is stored."""
        return self != Wanted()

    def scored(self, cells: Sequence[Cell]) -> Scored | None:
        """How answers that need not be scored anew are scored; None if there may be no such."""
        if not self.anew or self.labels is not None:
            return None
        truths = "" if self.truths is None else self.truths.digest
        conventions = {scored_as(cell).convention for cell in cells} - {""}
        only = conventions.pop() if len(conventions) == 1 else ""
        return Scored(self.convention or only, truths)

    def rescoring(
        self, store: Store, listing: Listing, cells: Mapping[Condition, Cell], classes: tuple[str, ...]
    ) -> Rescoring | None:
        """How a model's answers are scored anew; None if they are stored as they are wanted."""
        if not self.anew:
            return None
        cell = next(iter(cells.values()))
        space = self._space(store, listing, cell, stored_space(cells), classes)
        digest = None if self.truths is None else self.truths.digest
        stored = cell.data.get("labels") or {}
        if space.facts() == {key: value for key, value in stored.items() if key != "truths"}:
            if self.truths is None or digest == stored.get("truths"):
                return None
        elif self.truths is None and "truths" in stored:
            raise ResultsError(
                "answers were scored by sets of labels; give their file again with --label-sets"
            )
        return Rescoring(space, self.truths)

    def _space(
        self, store: Store, listing: Listing, cell: Cell, stored: LabelSpace, classes: tuple[str, ...]
    ) -> LabelSpace:
        if self.labels is None and not stored.identity:
            return replace(stored, convention=self.convention or stored.convention)
        if self.labels is None and self.convention != "restricted":
            return stored
        model, table = str(cell.model["name"]), store.read(cell, listing)
        if "logits" not in table.column_names:
            raise _no_logits(model)
        used = np.unique(numbers_of(table["label"]))
        names = classes or tuple(map(str, range(int(used.max(initial=0)) + 1)))
        logits: Any = table["logits"].combine_chunks()
        outputs = ModelOutputs(model, int(logits.type.list_size))
        data = DatasetLabels(str(cell.data["name"]), names, used.astype(np.int64))
        try:
            return find_space(data, outputs, labels=self.labels or "identity", convention=self.convention)
        except LabelError as error:
            raise error.without("--classes") from None
