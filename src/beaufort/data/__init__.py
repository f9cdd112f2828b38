"""Datasets: readers of files and directories, images, labels, the catalog of downloads, and writers.

```python
from beaufort.data import load_dataset

digits = load_dataset("mnist-test")  # a name of the catalog, a path, a URL or kind:path
digits[0].image.shape
```
"""

from __future__ import annotations

from beaufort._core.catalog import (
    Asset,
    Entry,
    State,
    assets,
    cache_folder,
    entries,
    fetch,
    is_offline,
    pull,
    state,
)
from beaufort.data import (  # noqa: F401
    _catalog_entries,
    cifar,
    folder,
    huggingface,
    imagenet_val,
    imagenet_x,
    labels_csv,
    mnist,
    natural_shifts,
    shards,
)
from beaufort.data._catalog_entries import ICON_PACKAGES, IconPackage
from beaufort.data._dataset import Dataset, DatasetIterator, Pixels, Problem, Sample, iterate, numbered
from beaufort.data._decoder_processes import start_decoder_server
from beaufort.data._digest import Content, digest_of
from beaufort.data._load import DatasetSpec, dataset_kind, load_dataset, parse_spec
from beaufort.data._reader import Reader, readers
from beaufort.data._rows import RowIds, validate_image_shape, validate_labels
from beaufort.data.decoders import Decoders, should_use_decoders
from beaufort.data.frame_sets import FrameSets, frame_number, read_frame_sets
from beaufort.data.icons import icon_columns
from beaufort.data.images import decode_file
from beaufort.data.mined import KIND_FOLDERS, MANIFEST, SET_FILE
from beaufort.data.numpy_files import as_pixels, from_arrays, npz_arrays
from beaufort.data.preparation import PreparedImages, Step, prepare, resized
from beaufort.data.relabeled import check_all_imagenet_classes, select_classes
from beaufort.data.stored_sets import StoredSet, check_same_images, is_one_condition, stored_set

__all__ = [
    "ICON_PACKAGES",
    "KIND_FOLDERS",
    "MANIFEST",
    "SET_FILE",
    "Asset",
    "Content",
    "Dataset",
    "DatasetIterator",
    "DatasetSpec",
    "Decoders",
    "Entry",
    "FrameSets",
    "IconPackage",
    "Pixels",
    "PreparedImages",
    "Problem",
    "Reader",
    "RowIds",
    "Sample",
    "State",
    "Step",
    "StoredSet",
    "as_pixels",
    "assets",
    "cache_folder",
    "check_all_imagenet_classes",
    "check_same_images",
    "dataset_kind",
    "decode_file",
    "digest_of",
    "entries",
    "fetch",
    "frame_number",
    "from_arrays",
    "icon_columns",
    "is_offline",
    "is_one_condition",
    "iterate",
    "load_dataset",
    "npz_arrays",
    "numbered",
    "parse_spec",
    "prepare",
    "pull",
    "read_frame_sets",
    "readers",
    "resized",
    "select_classes",
    "should_use_decoders",
    "start_decoder_server",
    "state",
    "stored_set",
    "validate_image_shape",
    "validate_labels",
]
