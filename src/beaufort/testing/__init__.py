"""Checks of the contracts of corruptions, models and stores, for plug-in authors.

```python
from beaufort.testing import check_corruption, check_model, check_store
check_corruption(my_corruption)
assert not check_model(my_model)
check_store(make_my_store)
```
"""

from __future__ import annotations

from beaufort.evaluation.model_checks import MeasuredAccuracy
from beaufort.testing._contracts import CORRUPTION_CONTRACTS, ContractError, check_corruption
from beaufort.testing._models import MODEL_CONTRACTS, ModelFinding, check_model, measure_accuracy
from beaufort.testing._stores import STORE_CONTRACTS, check_store

__all__ = [
    "CORRUPTION_CONTRACTS",
    "MODEL_CONTRACTS",
    "STORE_CONTRACTS",
    "ContractError",
    "MeasuredAccuracy",
    "ModelFinding",
    "check_corruption",
    "check_model",
    "check_store",
    "measure_accuracy",
]
