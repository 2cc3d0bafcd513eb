package decide_test

import (
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/status"
)

// earlierWorlds are those of what an earlier deletion.before has begun: it holds the downstreams, whatever the config
// has now.
func earlierWorlds() []world {
	var worlds []world
	add := func(name, reason, kind string, state operator.State, condition string, changes ...func(*status.Recorded, *operator.BeforeFacts)) {
		worlds = append(worlds, world{name, reason, func(in *operator.Input) {
			r := beforeRecord(state, beforeUID)
			r.APIVersion, r.Kind = "batch/v1", kind
			in.Before = operator.BeforeFacts{Live: beforeLive("")}
			in.Before.Live.Kept = map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": condition, "status": "True"}}}}
			for _, change := range changes {
				change(r, &in.Before)
			}
			if state == operator.StateBeforeFinished {
				in.Before.Record = r
			}
			in.Upstream.Object["status"] = map[string]any{"downstreams": status.RecordedList([]status.Recorded{*r})}
		}})
	}
	notCreated := func(r *status.Recorded, _ *operator.BeforeFacts) { r.UID = "" }
	gone := func(_ *status.Recorded, f *operator.BeforeFacts) { f.Live = nil }
	deleting := func(_ *status.Recorded, f *operator.BeforeFacts) { f.Live.Deleting = true }
	add("runs", "a Job says by itself when it has finished", "Job", operator.StateBeforeRunning, "")
	add("created by a process that died", "it is ours, so its uid is recorded", "Job", operator.StateCreate, "", notCreated)
	add("complete", "the outcome is recorded before anything goes on", "Job", operator.StateBeforeRunning, "Complete")
	add("complete and being deleted", "its time to live is over", "Job", operator.StateBeforeRunning, "Complete", deleting)
	add("timed out, then complete", "late is not never", "Job", operator.StateBeforeTimedOut, "Complete")
	add("failed", "the policy that it had is not known", "Job", operator.StateBeforeRunning, "Failed")
	add("failed is recorded", "there is nothing more to do", "Job", operator.StateBeforeFailed, "Failed")
	add("deleted", "the garbage collector does that, too, with --cascade=foreground", "Job", operator.StateBeforeRunning, "", deleting)
	add("gone", "whether it had finished is not known", "Job", operator.StateBeforeRunning, "", gone)
	add("never created", "nothing is backed up, and what is recorded still holds for the config that created it", "Job", operator.StateCreate, "",
		notCreated, gone)
	add("never created, nothing known", "likewise", "Job", operator.StateBeforeTimedOut, "", notCreated, gone,
		func(r *status.Recorded, _ *operator.BeforeFacts) { r.ObjectName = "" })
	add("of a kind without conditions", "without doneWhen, only a person knows", "Dump", operator.StateBeforeRunning, "Complete")
	add("that may not be read", "the rights went with the key: it may run", "Job", operator.StateBeforeRunning, "", gone,
		func(_ *status.Recorded, f *operator.BeforeFacts) { f.Unread = "jobs is forbidden" })
	add("finished", "a person has set the state, or it was recorded: the downstreams go", "Job", operator.StateBeforeFinished, "", gone)
	return worlds
}
