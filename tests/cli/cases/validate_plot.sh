# The picture is one SVG element.
ndplan validate --runs "$DATA/runs.csv" --plot picture.svg >/dev/null && head -c 4 picture.svg && grep -c "</svg>" picture.svg
