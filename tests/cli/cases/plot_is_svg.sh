# A picture is SVG: another name is refused before anything is computed, and a failure names option and file.
ndplan sweep --model llama-3.1-8b --cluster 8xh100 --over gpus --plot gpus.png
echo $?
ndplan validate --plot errors.PDF
echo $?
ndplan sweep --model llama-3.1-8b --cluster 8xh100 --over gpus --values 8 --plot gpus.SVG -q >/dev/null
echo $?
ls
ln -s /dev/full full.svg
ndplan sweep --model llama-3.1-8b --cluster 8xh100 --over gpus --values 8 --plot full.svg
