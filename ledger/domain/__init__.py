"""The pure domain: frozen values and functions, standard library only, time passed in."""
