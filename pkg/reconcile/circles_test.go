package reconcile

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// TestCircles: of those that wait for each other, one gives way, as long as all decided on what they are now.
func TestCircles(t *testing.T) {
	type waits struct{ upstream, object, blockers string }
	for _, row := range []struct {
		reason  string
		noted   []waits
		changed string // an upstream that has changed since
		gives   string // the objects that give way
	}{
		{"nobody waits for it", []waits{{"a", "1", "2"}}, "", ""},
		{"a chain ends", []waits{{"a", "1", "2"}, {"b", "2", "3"}}, "", ""},
		{"the last one closes the circle", []waits{{"a", "1", "2"}, {"b", "2", "1"}}, "", "2"},
		{"so does one of three", []waits{{"a", "1", "2"}, {"b", "2", "3"}, {"c", "3", "1"}}, "", "3"},
		{"one is enough", []waits{{"a", "1", "2"}, {"b", "2", "1"}, {"a", "1", "2"}}, "", "2"},
		{"it goes on giving way", []waits{{"a", "1", "2"}, {"b", "2", "1"}, {"b", "2", "1"}}, "", "2"},
		{"the other one has changed", []waits{{"a", "1", "2"}, {"b", "2", "1"}}, "a", ""},
		{"the other one no longer waits", []waits{{"a", "1", "2"}, {"a", "", ""}, {"b", "2", "1"}}, "", ""},
		{"it is outside of the circle", []waits{{"a", "1", "2"}, {"b", "2", "1"}, {"c", "3", "1"}}, "", "2"},
		{"it waits for two", []waits{{"a", "1", "23"}, {"b", "2", ""}, {"c", "3", "1"}}, "", "3"},
	} {
		var c circles
		for _, w := range row.noted {
			noted := waitingUpstream{digest: drift.Digest(w.upstream)}
			if w.object != "" {
				noted.blockers = map[types.UID][]types.UID{types.UID(w.object): nil}
				for _, b := range w.blockers {
					noted.blockers[types.UID(w.object)] = append(noted.blockers[types.UID(w.object)], types.UID(b))
				}
			}
			c.note(pipeline.Ref{Name: w.upstream}, noted, func(at pipeline.Ref, digest drift.Sum) bool {
				return at.Name != row.changed && digest == drift.Digest(at.Name)
			})
		}
		gives := ""
		for i := range 4 {
			object := types.UID(fmt.Sprint(i))
			if c.givesWay(object) {
				gives += string(object)
			}
		}
		if gives != row.gives {
			t.Errorf("%s: %q give way, want %q", row.reason, gives, row.gives)
		}
	}
}
