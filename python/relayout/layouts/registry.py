"""The layouts that relayout knows."""

from collections.abc import Mapping

from relayout.layouts import maxtext, tunix
from relayout.layouts.layout import Layout

LAYOUTS: Mapping[str, Layout] = {
  layout.name: layout for layout in (maxtext.LAYOUT, tunix.LAYOUT)
}
"""By name."""
