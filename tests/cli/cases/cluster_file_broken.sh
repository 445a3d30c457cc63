# A topology file with a mistake.
printf "{\\n  \"nodes\": two\\n}\\n" >site.json
ndplan suggest --model llama-3.1-8b --cluster ./site.json
