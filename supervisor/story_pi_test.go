package supervisor

// storyPi is a program in the place of pi. As a lane it reviews: a plan well, a work as
// long as batch.txt does not say what it counts badly. In RPC mode it carries the plan
// out, and gets nowhere with the second check three times. $STORY is where it keeps a
// journal: what it was started for, and whether that was approved.
const storyPi = `#!/bin/sh
say() { printf '%s\n' "$1"; }
turn() {
  say '{"type":"agent_start"}'
  say '{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"'"$1"'"}],"model":"stub","stopReason":"stop","usage":{"input":7,"output":2,"cost":{"total":0.25}}}}'
  say '{"type":"turn_end"}'
  say '{"type":"agent_end","messages":[],"willRetry":false}'
  say '{"type":"agent_settled","aborted":false}'
}
note() { printf '%s\n' "$1" >>"$STORY/journal"; }
case "$*" in
*"--mode json"*)
  task=$(cat)
  case "$task" in
  *"criticize one plan"*)
    note 'criticizer plan'
    turn '## Summary\n\nIt rests on one oven.\n\n## Questions\n\nNo questions.' ;;
  *"review one plan"*)
    note 'reviewer plan'
    turn '## Findings\n\nNo findings.\n\n## Checked\n\n- the plan' ;;
  *)
    note 'reviewer implementation'
    if grep -q 'a batch' batch.txt; then
      turn '## Findings\n\nNo findings.\n\n## Checked\n\n- batch.txt'
    else
      turn '## Findings\n\n### F-001 · high · The batch has no unit\n- Affects: I-001\n- Evidence: batch.txt:1 — 45 minutes\n- Impact: nobody can tell what it counts.\n- Fix: say it.\n- Disposition: accept\n\n## Checked\n\n- batch.txt'
    fi ;;
  esac
  exit 0 ;;
esac
cat .git/pi_plans/runs/*/checkpoint.json | grep -q approvedAt || note unapproved
while IFS= read -r line; do
  id=${line#*\"id\":\"}
  id=${id%%\"*}
  say '{"id":"'"$id"'","type":"response","command":"prompt","success":true}'
  case "$line" in
  *"Verified: 0 of 2"*)
    echo '45 minutes' >batch.txt
    turn 'it is written [DONE:VC-001]' ;;
  *"Verified: 1 of 2"*)
    thoughts=$(cat "$STORY/thoughts" 2>/dev/null)
    if [ ${#thoughts} -lt 3 ]; then
      printf . >>"$STORY/thoughts"
      turn 'let me think'
    else
      echo 40 >oven.txt
      turn 'it is faster [DONE:VC-002]'
    fi ;;
  *"independent reviewers"*)
    echo '45 minutes a batch' >batch.txt
    turn 'F-001 accepted: it says what it counts' ;;
  *) turn 'what is there to do?' ;;
  esac
done
`
