package pipeline

import (
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/status"
)

// TestDecideEarlierBefore: what an earlier deletion.before has begun holds the downstreams, whatever the config has now.
func TestDecideEarlierBefore(t *testing.T) {
	job := func(kind string, state State, change func(*status.Recorded)) *status.Recorded {
		r := &status.Recorded{Name: BeforeName, APIVersion: "batch/v1", Kind: kind, Namespace: "apps", ObjectName: "web-drain", UID: beforeUID, State: string(state)}
		if change != nil {
			change(r)
		}
		return r
	}
	unmade := func(r *status.Recorded) { r.UID = "" }
	live := func(condition string, deleting bool) *drift.Live {
		l := beforeLive("")
		l.Deleting = deleting
		l.Kept = map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": condition, "status": "True"}}}}
		return l
	}
	for _, row := range []struct {
		name, reason string
		record       *status.Recorded
		facts        BeforeFacts
		state        State
		action       Action
		stalled      bool
		passed       bool
		message      string
	}{
		{name: "runs", reason: "a Job tells by itself when it has finished", record: job("Job", StateBeforeRunning, nil), facts: BeforeFacts{Live: live("", false)},
			state: StateBeforeRunning, message: "waiting for Job apps/web-drain to finish; nothing is deleted"},
		{name: "made by a process that died", reason: "it is ours, so its uid is recorded", record: job("Job", StateCreate, unmade), facts: BeforeFacts{Live: live("", false)},
			state: StateBeforeRunning, action: ActionRecord, message: "waiting for"},
		{name: "complete", reason: "the outcome is recorded before anything goes on", record: job("Job", StateBeforeRunning, nil), facts: BeforeFacts{Live: live("Complete", false)},
			state: StateBeforeFinished, action: ActionRecord, message: "Job apps/web-drain finished"},
		{name: "complete and being deleted", reason: "its time to live is over", record: job("Job", StateBeforeRunning, nil), facts: BeforeFacts{Live: live("Complete", true)},
			state: StateBeforeFinished, action: ActionRecord},
		{name: "timed out, then complete", reason: "late is not never", record: job("Job", StateBeforeTimedOut, nil), facts: BeforeFacts{Live: live("Complete", false)},
			state: StateBeforeFinished, action: ActionRecord},
		{name: "failed", reason: "the policy that it had is not known", record: job("Job", StateBeforeRunning, nil), facts: BeforeFacts{Live: live("Failed", false)},
			state: StateBeforeFailed, action: ActionRecord, stalled: true, message: "Job apps/web-drain failed; nothing is deleted"},
		{name: "failed is recorded", reason: "there is nothing more to do", record: job("Job", StateBeforeFailed, nil), facts: BeforeFacts{Live: live("Failed", false)},
			state: StateBeforeFailed, stalled: true},
		{name: "deleted", reason: "the garbage collector does that, too, with --cascade=foreground", record: job("Job", StateBeforeRunning, nil), facts: BeforeFacts{Live: live("", true)},
			state: StateBeforeFailed, action: ActionRecord, stalled: true, message: "was deleted before it finished"},
		{name: "gone", reason: "whether it had finished is not known", record: job("Job", StateBeforeRunning, nil), state: StateBeforeFailed, action: ActionRecord, stalled: true,
			message: "disappeared before it finished"},
		{name: "never made", reason: "nothing is backed up, and what is recorded still holds for the config that made it", record: job("Job", StateCreate, unmade),
			state: StateCreate, stalled: true, message: "Job apps/web-drain was not created; nothing is deleted"},
		{name: "never made, nothing known", reason: "likewise", record: job("Job", StateBeforeTimedOut, func(r *status.Recorded) { r.UID, r.ObjectName = "", "" }),
			state: StateBeforeTimedOut, stalled: true, message: "Job was not created"},
		{name: "of a kind that does not tell", reason: "without doneWhen, only a person knows", record: job("Dump", StateBeforeRunning, nil), facts: BeforeFacts{Live: live("Complete", false)},
			state: StateBeforeRunning, stalled: true, message: "only doneWhen knows whether Dump apps/web-drain has finished"},
		{name: "that may not be read", reason: "the rights went with the key: it may run", record: job("Job", StateBeforeRunning, nil), facts: BeforeFacts{Unread: "jobs is forbidden"},
			state: StateBeforeRunning, stalled: true, message: "is not known: jobs is forbidden; nothing is deleted"},
		{name: "finished", reason: "a person has set the state, or it was recorded: the downstreams go", record: job("Job", StateBeforeFinished, nil), passed: true},
	} {
		none := onePipeline(nil)
		other := beforePipeline(t, func(op *config.Operator) {
			op.Deletion.Before.OnFailure, op.Deletion.Before.OnTimeout = config.BeforeProceed, config.BeforeProceed
		})
		for name, p := range map[string]*Pipeline{"none": none, "another kind": other} {
			t.Run(row.name+", now "+name, func(t *testing.T) {
				in := deleted()
				p.downstreamsPath = mustPath(t, ".status.downstreams")
				if err := fieldpath.Set(in.Upstream.Object, p.downstreamsPath, status.RecordedList([]status.Recorded{*row.record})); err != nil {
					t.Fatal(err)
				}
				if in.Before = row.facts; row.passed {
					in.Before.Record = row.record
				}
				d := p.DecideDeletion(in)
				if row.passed {
					if d.WaitsForBefore || len(d.Leftovers) == 0 {
						t.Fatalf("%s: got %+v", row.reason, d)
					}
					return
				}
				if !d.WaitsForBefore || len(d.Leftovers) > 0 || d.Before.State != row.state || d.Before.Action != row.action || !strings.Contains(d.Before.Message, row.message) {
					t.Fatalf("%s: got %+v", row.reason, d.Before)
				}
				report := p.ReportDeletion(in.Upstream, d, nil, *in.Upstream.GetDeletionTimestamp())
				if f := report.Facts[0]; f.Failed != row.stalled || f.Progressing == row.stalled {
					t.Errorf("%s: the fact is %+v", row.reason, f)
				}
			})
		}
	}
}
