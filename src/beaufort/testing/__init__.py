"""Contracts that every corruption keeps, for your own ones too.

```python
from beaufort.testing import check_corruption
check_corruption(my_corruption)
```
"""

from __future__ import annotations

from beaufort.testing._contracts import CORRUPTION_CONTRACTS, ContractError, check_corruption

__all__ = ["CORRUPTION_CONTRACTS", "ContractError", "check_corruption"]
