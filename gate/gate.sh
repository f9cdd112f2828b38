#!/usr/bin/env bash
# Evaluate a model, compare it with a reference run, and write the report. Settings come from GATE_… variables, see action.yml.
set -euo pipefail

store=${GATE_STORE:-robustness}
reference=${GATE_REFERENCE:-robustness-reference}
undecided=${GATE_UNDECIDED:-fail}
case $undecided in
    fail | pass) ;;
    *) echo "undecided must be 'fail' or 'pass', got '$undecided'" >&2; exit 2 ;;
esac

beaufort run --model "$GATE_MODEL" --suite "$GATE_SUITE" --data "$GATE_DATA" --store "$store" \
    ${GATE_LIMIT:+--limit "$GATE_LIMIT"}
beaufort report "$store" --output "${GATE_REPORT:-robustness.html}"

code=0
if [ -d "$reference" ]; then
    beaufort gate --store "$store" --reference "$reference" --max-drop "${GATE_MAX_DROP:-1.0}" \
        --junit "$store.xml" --github-summary || code=$?
    case $code in
        0) outcome=passed ;;
        1) outcome=failed ;;
        3) outcome=undecided ;;
        *) exit "$code" ;;
    esac
else
    outcome=no-reference
    echo "::notice title=Robustness gate::No reference results in $reference. Save $store of the main branch there."
fi
echo "outcome=$outcome" >>"${GITHUB_OUTPUT:-/dev/null}"
[ "$outcome" = undecided ] && [ "$undecided" = pass ] && code=0
exit "$code"
