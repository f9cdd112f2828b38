"""Leave one value out: train without one camera, hospital or season, and see how its images fare.

For every value of a column: a network is trained on the images of all other values, and scored on those of
the left-out value, and on some images of the others that it was not trained on either.
"""

from __future__ import annotations

from beaufort.studies.leave_out.experiment import LeaveOut, LeaveOutProgress, leave_out
from beaufort.studies.leave_out.value_report import ValueScore, remarks

__all__ = ["LeaveOut", "LeaveOutProgress", "ValueScore", "leave_out", "remarks"]
