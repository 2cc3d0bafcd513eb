package decide_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
)

// What would be deleted with a Namespace, or a definition, holds it as long as it must stay, and what is kept keeps it:
// whatever has the two go. The first downstream is the Namespace, the second one is in it, the third is elsewhere.
func TestHoldsContents(t *testing.T) {
	custom := func(op *config.Operator) {
		op.Downstreams[1].APIVersion, op.Downstreams[1].Kind = "example.com/v1", "Widget"
	}
	definition := func(op *config.Operator) {
		custom(op)
		op.Downstreams[0].APIVersion, op.Downstreams[0].Kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
	}
	kept := func(op *config.Operator) { op.Downstreams[1].DeletionPolicy = config.DeletionOrphan }
	after := func(i int, name string) func(*config.Operator) {
		return func(op *config.Operator) {
			op.Downstreams[i].After = []config.After{{Name: name, Until: config.AfterCreated}}
		}
	}
	gone := func(list ...int) func(*operator.Input) {
		return func(in *operator.Input) {
			left := in.Leftovers
			in.Leftovers = nil
			for i, own := range left {
				if !strings.Contains(fmt.Sprint(list), fmt.Sprint(i)) {
					in.Leftovers = append(in.Leftovers, own)
				}
			}
		}
	}
	terminates := func(i int) func(*operator.Input) {
		return func(in *operator.Input) { in.Leftovers[i].Live.Deleting = true }
	}
	unread := func(in *operator.Input) { in.Unread = append(in.Unread, in.Leftovers[1]); gone(1)(in) }
	type changes []func(*config.Operator)
	for _, row := range []struct {
		reason  string
		config  changes
		change  func(*operator.Input)
		want    string // the actions of what is left over where its upstream does not ask for it any more
		deleted string // the same where the upstream is deleted and waits; empty: as in want
		alone   string // the same where it does not wait; empty: as in deleted
		says    string // the message of the first one
	}{
		{reason: "all go at once", want: "Delete/Delete/Delete"},
		{reason: "what is in it has an operator of its own", config: changes{custom}, want: "None/Delete/Delete",
			says: "it stays until Widget apps/inner, which is in it, is gone"},
		{reason: "that is terminating", config: changes{custom}, change: terminates(1), want: "None/None/Delete",
			says: "it stays until Widget apps/inner, which is in it, is gone"},
		{reason: "that is gone", config: changes{custom}, change: gone(1), want: "Delete/Delete"},
		{reason: "that comes after the Namespace", config: changes{custom, after(1, "holder")}, want: "None/Delete/Delete",
			says: "it stays until Widget apps/inner, which"},
		{reason: "the Namespace comes after that", config: changes{custom, after(0, "inner")}, want: "Delete/None/Delete", alone: "None/Delete/Delete"},
		{reason: "one waits for another one", config: changes{after(2, "inner")}, want: "None/None/Delete", alone: "Delete/Delete/Delete",
			says: "it stays until Service apps/inner, which is in it, is gone"},
		{reason: "that one is terminating", config: changes{after(2, "inner")}, change: terminates(2), want: "None/None/None", alone: "Delete/Delete/None"},
		{reason: "it is terminating itself", config: changes{after(2, "inner")}, change: terminates(1), want: "Delete/None/Delete"},
		{reason: "it is elsewhere", config: changes{after(1, "elsewhere")}, want: "Delete/Delete/None", alone: "Delete/Delete/Delete"},
		{reason: "the Namespace comes after what is in it", config: changes{after(0, "inner")}, want: "Delete/None/Delete", alone: "Delete/Delete/Delete"},
		{reason: "so through another one", config: changes{after(2, "inner"), after(0, "elsewhere")}, want: "Delete/None/None", alone: "Delete/Delete/Delete"},
		{reason: "it may be there", change: unread, want: "None/Delete", says: "it stays until Service apps/inner, which is in it, can be read"},

		{reason: "it is kept", config: changes{kept}, want: "Release/None/Delete", says: "it is kept, since Service apps/inner, which deletionPolicy Orphan keeps, is in it"},
		{reason: "then the Namespace is ours no more", config: changes{kept}, change: gone(0), want: "Release/Delete"},
		{reason: "it is kept, and another one comes after it", config: changes{kept, after(2, "inner")}, want: "Release/None/Delete"},
		{reason: "it is kept, and the Namespace comes after it", config: changes{kept, after(0, "inner")}, want: "Release/None/Delete"},
		{reason: "it is kept, and another one comes after the Namespace", config: changes{kept, after(2, "holder")}, want: "Release/None/Delete"},
		{reason: "it is kept, and comes after the Namespace", config: changes{kept, after(1, "holder")}, want: "Release/None/Delete"},
		{reason: "it is kept, and somebody deletes it", config: changes{kept}, change: terminates(1), want: "Delete/None/Delete"},
		{reason: "it is kept, and somebody deletes the Namespace", config: changes{kept}, change: terminates(0), want: "None/Release/Delete"},
		{reason: "only its fields are ours", config: changes{kept, func(op *config.Operator) { op.Downstreams[1].Ownership = config.OwnershipFields }}, want: "Delete/Release/Delete"},
		{reason: "both are kept", config: changes{kept, func(op *config.Operator) { op.Downstreams[0].DeletionPolicy = config.DeletionOrphan }}, want: "Release/Release/Delete"},
		{reason: "the collector would delete the Namespace", config: changes{kept}, change: func(in *operator.Input) { in.Leftovers[0].Live.Owners = ourLive().Owners }, want: "Release/None/Delete"},
		{reason: "one of the kind is kept", config: changes{definition, kept}, want: "Release/None/Delete", says: "is of this kind"},
		{reason: "one of the kind waits", config: changes{definition, after(2, "inner")}, want: "None/None/Delete", alone: "None/Delete/Delete", says: "of this kind"},
		{reason: "one of a kind that cannot be listed may be in it", config: changes{after(1, "elsewhere")}, change: func(in *operator.Input) {
			in.Unread, in.Leftovers = []operator.Owned{{Downstream: 1, Live: &drift.Live{}}}, append(in.Leftovers[:1:1], in.Leftovers[2])
		}, want: "None/None", alone: "None/Delete", says: "it stays until any Service, which is in it, can be read"},
		{reason: "all are kept", change: func(in *operator.Input) { in.Cascade = operator.CascadeOrphan }, want: "Delete/Delete/Delete", deleted: "Release/Release/Release"},
	} {
		p := onePipeline(func(op *config.Operator) {
			d := op.Downstreams[0]
			op.Downstreams = nil
			for _, name := range []string{"holder", "inner", "elsewhere"} {
				d.Name, d.APIVersion, d.Kind = name, "v1", "Service"
				op.Downstreams = append(op.Downstreams, d)
			}
			op.Downstreams[0].Kind, op.Downstreams[2].Kind = "Namespace", "Secret"
			for _, change := range row.config {
				change(op)
			}
		})
		for i, resource := range []string{"namespaces", "widgets", "gadgets"} {
			p.Downstreams[i].Kind.GVR = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: resource}
		}
		name := "apps"
		if p.Downstreams[0].Config.Kind != "Namespace" {
			name = "widgets.example.com"
		}
		unselected := inSyncInput()
		unselected.Selected, unselected.HasFinalizer, unselected.Desired = false, true, nil
		waits, alone := deleted(), deleted()
		waits.Cascade = operator.CascadeForeground
		whenDeleted := cmp.Or(row.deleted, row.want)
		for _, way := range []struct {
			name string
			in   operator.Input
			want string
		}{{"not selected", unselected, row.want}, {"deleted, waits", waits, whenDeleted}, {"deleted", alone, cmp.Or(row.alone, whenDeleted)}} {
			way.in.Leftovers = nil
			for i, at := range []operator.Ref{{Name: name}, {Namespace: "apps", Name: "inner"}, {Namespace: "other", Name: "elsewhere"}} {
				live := ourLive()
				live.OwnerMark, live.MarkApplied, live.Owners = "apps/web/"+string(upstreamUID), true, nil
				live.Namespace, live.Name, live.UID = at.Namespace, at.Name, types.UID(fmt.Sprint("live-", i))
				way.in.Leftovers = append(way.in.Leftovers, operator.Owned{Downstream: i, Live: live, Certain: true})
			}
			if row.change != nil {
				row.change(&way.in)
			}
			d := func(in operator.Input) operator.Decision { return decide.Decide(p.Settings, in) }
			if way.name != "not selected" {
				d = func(in operator.Input) operator.Decision { return decide.Deletion(p.Settings, in) }
			}
			out := d(way.in)
			var got []string
			for _, o := range out.Leftovers {
				if got = append(got, string(o.Action)); o.Action == operator.ActionNone {
					got[len(got)-1] = "None"
				}
			}
			if text := strings.Join(got, "/"); text != way.want {
				t.Errorf("%s, %s: %s, want %s", row.reason, way.name, text, way.want)
			}
			if o := out.Leftovers[0]; strings.Contains(way.want, "None") && !strings.Contains(o.Message, row.says) {
				t.Errorf("%s, %s: %s", row.reason, way.name, o.Message)
			}
			if strings.Contains(way.want, "None") && !strings.Contains(row.reason, "terminating") && !strings.Contains(row.reason, "deletes") && out.Finalizer == operator.FinalizerRemove {
				t.Errorf("%s, %s: the finalizer is removed", row.reason, way.name)
			}
		}
	}
}
