"""What released versions left behind: stores and configurations that later ones start on."""
