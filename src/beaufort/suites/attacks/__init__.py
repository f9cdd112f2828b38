"""Attacks: images made to fool one model, as conditions of an evaluation.

An attack uses the gradients of the model: `imagenet-val/pgd-linf@2/255` is the dataset `imagenet-val` under
projected gradient descent that changes no value by more than 2/255.

```python
from beaufort.suites.attacks import attack_images, attacks
fooled = attack_images(attacks["pgd-linf"], model, images, labels, epsilon=2 / 255, ids=ids)
logits = model.predict_pixels(fooled)
```

Importing this does not import torch.
"""

from __future__ import annotations

from beaufort.suites.attacks.attack import Attack, AttackError, Victim, attack_images, check_attackable
from beaufort.suites.attacks.balls import BALLS
from beaufort.suites.attacks.catalog import AttackShift, attacks, parse_epsilon, register_attack
from beaufort.suites.attacks.libraries import AutoAttack, Foolbox
from beaufort.suites.attacks.pgd import PGD

__all__ = [
    "BALLS",
    "PGD",
    "Attack",
    "AttackError",
    "AttackShift",
    "AutoAttack",
    "Foolbox",
    "Victim",
    "attack_images",
    "attacks",
    "check_attackable",
    "parse_epsilon",
    "register_attack",
]
