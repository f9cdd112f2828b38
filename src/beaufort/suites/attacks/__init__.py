"""Attacks: images made to fool one model, as conditions of an evaluation.

A corruption is the same for every model. An attack is made for the model that it is shown to, from its
gradients: `imagenet-val/pgd-linf@2/255` is the data set `imagenet-val` under projected gradient descent that
changes no value by more than 2/255.

```python
from beaufort.suites.attacks import attack_images, attacks
fooled = attack_images(attacks["pgd-linf"], model, images, labels, epsilon=2 / 255, ids=ids)
logits = model.answer_pixels(fooled)
```

Importing this does not import torch.
"""

from __future__ import annotations

from beaufort.suites.attacks._errors import AttackError
from beaufort.suites.attacks.attack import Attack, attack_images
from beaufort.suites.attacks.balls import BALLS, Ball
from beaufort.suites.attacks.epsilon import Epsilon
from beaufort.suites.attacks.external import AutoAttack, Foolbox
from beaufort.suites.attacks.known import AttackShift, attacks, register_attack
from beaufort.suites.attacks.pgd import PGD
from beaufort.suites.attacks.victim import Victim, check_attackable

__all__ = [
    "BALLS",
    "PGD",
    "Attack",
    "AttackError",
    "AttackShift",
    "AutoAttack",
    "Ball",
    "Epsilon",
    "Foolbox",
    "Victim",
    "attack_images",
    "attacks",
    "check_attackable",
    "register_attack",
]
