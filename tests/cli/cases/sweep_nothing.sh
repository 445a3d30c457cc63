# Nothing fits anywhere: exit 1, and no picture.
# compare: match
ndplan sweep --model llama-3.1-70b --cluster h100 --over seq-len --values 1024,2048 --plot none.svg
status=$?
[ ! -e none.svg ] || echo "a picture of nothing"
exit $status
