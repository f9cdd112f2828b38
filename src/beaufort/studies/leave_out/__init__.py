"""Leave-one-group-out training: how well does a classifier do on a camera, hospital or season it never saw?

For every value of a column, a network is trained on the images of all other values. It is evaluated on those
of the left-out value, and on images of the other values that were kept out of training.
"""

from __future__ import annotations

from beaufort.studies.leave_out.experiment import LeaveOut, LeaveOutProgress, leave_out
from beaufort.studies.leave_out.value_report import ValueScore, remarks

__all__ = ["LeaveOut", "LeaveOutProgress", "ValueScore", "leave_out", "remarks"]
