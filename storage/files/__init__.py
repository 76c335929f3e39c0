"""Files of a store: mapped, in runs of equal size, replaced in one step, or read at rest."""
