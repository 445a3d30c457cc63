# A file that cannot be written in full leaves what was there before.
echo old >mine.json
(
    trap '' XFSZ
    ulimit -f 1
    ndplan calibrate --from-runs "$DATA/few_runs.csv" --skip-left-out --quiet --output mine.json
)
status=$?
cat mine.json
ls
exit $status
