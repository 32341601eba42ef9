"""Takes off what trainers wrap around an optimizer, and puts it back.

MaxText's pre-training keeps the state of `optax.adamw` with a schedule, and
nothing around it:

    (ScaleByAdamState(count, mu, nu), EmptyState(), ScaleByScheduleState(count))

Other trainers clip in a chain, accumulate in `MultiSteps`, and set the learning
rate by `inject_hyperparams`, in any order and depth.  `strip_wrappers` makes
the first of the second, `restore_wrappers` the second of the first.

Around an injected learning rate the optimizer has no schedule, so the position
of the schedule stands in the wrapper: it goes to the last member of the chain,
which is without state there, and comes from it again.
"""

from relayout.optimizers.restoring import restore_wrappers as restore_wrappers
from relayout.optimizers.stripping import Removed as Removed
from relayout.optimizers.stripping import Stripped as Stripped
from relayout.optimizers.stripping import strip_wrappers as strip_wrappers
