package decide_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/generated"
	"github.com/corollary-dev/corollary/pkg/operator/health"
	"github.com/corollary-dev/corollary/pkg/status"
)

// secretPipeline is a pipeline of Secrets, each with a generated password.
func secretPipeline(downstreams int, several bool) *health.Checks {
	p := onePipeline(func(op *config.Operator) {
		first := op.Downstreams[0]
		op.Downstreams = nil
		for i := range downstreams {
			d := first
			if d.Name, d.Kind = fmt.Sprint("login", i), "Secret"; several {
				d.ForEach = &config.ForEach{Items: "self.spec.users"}
			}
			op.Downstreams = append(op.Downstreams, d)
		}
	})
	for _, d := range p.Downstreams {
		d.Generated = []operator.GeneratedField{{Key: "password", Length: 32, Characters: "ab"}}
	}
	return p
}

// absentAt is an object of downstream 0 that is wanted and does not exist.
func absentAt(name string, several bool) operator.DesiredObject {
	return operator.DesiredObject{Wanted: true, Target: operator.Ref{Namespace: "apps", Name: name}, Hash: hash, Secret: &drift.Secret{Content: canonical.Digest(name)}, Several: several}
}

// replacedAt is an object of downstream 0 that is not wanted any more. Its content says what it is about.
func replacedAt(namespace, name, content string) operator.Owned {
	live := ourLive()
	live.Namespace, live.Name, live.UID = namespace, name, types.UID("uid-"+name)
	live.Secret = &drift.Secret{Content: canonical.Digest(content)}
	return operator.Owned{Live: live, Certain: true}
}

func observed(u *unstructured.Unstructured, generation int64) {
	u.SetGeneration(2)
	u.Object["status"] = map[string]any{"observedGeneration": generation}
}

// Each object that gets generated values takes those of the object that it replaces; where it cannot, the outcome says
// that they are lost.
func TestGeneratedValuesAreCarriedOver(t *testing.T) {
	for _, row := range []struct {
		name, reason string
		downstreams  int // 0 means 1
		several      bool
		want         []operator.DesiredObject
		facts        operator.Facts // of the first object
		left         []operator.Owned
		observed     int64 // the generation of the upstream is 2
		namesItems   bool
		forgotten    string // the recorded state of a Secret of a downstream that the config no longer has; empty: there is none
		from         string
		lost         string
	}{
		{name: "a new object", reason: "nothing was there before"},
		{name: "renamed", reason: "the old object has the value", left: []operator.Owned{replacedAt("apps", "old", "")}, facts: operator.Facts{RecordedUID: "uid-old"}, from: "uid-old"},
		{name: "renamed twice", reason: "the recorded one was in place last", left: []operator.Owned{replacedAt("apps", "older", ""), replacedAt("apps", "old", "")},
			facts: operator.Facts{RecordedUID: "uid-old"}, from: "uid-old uid-older"},
		{name: "deleted", reason: "nobody has the value any more", facts: operator.Facts{RecordedUID: "uid-old", RecordedAt: target},
			lost: "a new random value for data.password: Secret apps/web, which had the last one, is gone, or lacks marks or labels of conventions"},
		{name: "deleted by us", reason: "the value is remembered", facts: operator.Facts{RecordedUID: "uid-old", HasKeptValues: true}},
		{name: "deleted after a rename", reason: "the one before still has the value", left: []operator.Owned{replacedAt("apps", "old", "")}, facts: operator.Facts{RecordedUID: "uid-gone"}, from: "uid-old"},
		{name: "two downstreams", reason: "another downstream's value is another secret", downstreams: 2,
			left: []operator.Owned{{Downstream: 1, Live: replacedAt("apps", "old", "").Live, Certain: true}}},
		{name: "of either downstream", reason: "a guess could give the password of one account to another", downstreams: 2,
			left: []operator.Owned{{Live: replacedAt("apps", "old", "").Live}}, lost: "cannot be told (apps/old)"},
		{name: "renamed by the template", reason: "the upstream did not change, so the items are the same", several: true, observed: 2,
			want: []operator.DesiredObject{absentAt("new-a", true), absentAt("new-b", true)},
			left: []operator.Owned{replacedAt("apps", "a", "new-a"), replacedAt("apps", "b", "new-b")}, from: "uid-a"},
		{name: "moved to another namespace", reason: "an item that keeps its name is the same", several: true, observed: 2,
			left: []operator.Owned{replacedAt("other", "web", "")}, from: "uid-web"},
		{name: "moved by an edit", reason: "a name that is made of the item says that it is the same", several: true, observed: 1, namesItems: true,
			left: []operator.Owned{replacedAt("other", "web", "")}, from: "uid-web"},
		{name: "another item of a fixed name", reason: "a namespace may be all that distinguishes items", several: true, observed: 1,
			left: []operator.Owned{replacedAt("other", "web", "")}, lost: "cannot be told (other/web)"},
		{name: "an item in two namespaces", reason: "nothing says which of them moves", several: true, observed: 1, namesItems: true,
			want: []operator.DesiredObject{absentAt(target.Name, true), absentAt(target.Name, true)}, left: []operator.Owned{replacedAt("other", "web", "")},
			lost: "cannot be told (other/web)"},
		{name: "another item", reason: "a new user must not get the password of one that was removed", several: true, observed: 1,
			left: []operator.Owned{replacedAt("apps", "a", "web")}, lost: "cannot be told (apps/a)"},
		{name: "items that look alike", reason: "nothing says which is which", several: true, observed: 2,
			left: []operator.Owned{replacedAt("apps", "a", "web"), replacedAt("apps", "b", "web")}, lost: "cannot be told (apps/a, apps/b)"},
		{name: "renamed with its downstream", reason: "nothing says that it is the same, and somebody may still need the old value", observed: 2, forgotten: "InSync",
			lost: "a new random value for data.password: Secret apps/old of downstream before, which the config no longer has, keeps its own"},
		{name: "a later downstream", reason: "what is left over for long has nothing to do with it", observed: 2, forgotten: "Leftover"},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := secretPipeline(max(row.downstreams, 1), row.several)
			p.Downstreams[0].NamesItems = row.namesItems
			if row.want == nil {
				row.want = []operator.DesiredObject{absentAt(target.Name, row.several)}
			}
			in := operator.Input{Upstream: upstreamObject(), Selected: true, Now: now, Desired: &operator.Desired{Objects: row.want}, Facts: make([]operator.Facts, len(row.want)), Leftovers: row.left}
			in.Facts[0] = row.facts
			if row.observed > 0 {
				observed(in.Upstream, row.observed)
			}
			if row.forgotten != "" {
				in.Upstream.Object["status"].(map[string]any)["downstreams"] = []any{map[string]any{"name": "before", "apiVersion": "v1",
					"kind": "Secret", "namespace": "apps", "objectName": "old", "uid": "uid-old", "state": row.forgotten}}
			}
			o := decide.Decide(p.Settings, in).Outcomes[0]
			var from []string
			for _, live := range o.ValuesFrom {
				from = append(from, string(live.UID))
			}
			if o.Action != operator.ActionCreate || strings.Join(from, " ") != row.from {
				t.Errorf("%s: %s with values from %v, want %q", row.reason, o.Action, from, row.from)
			}
			if (row.lost == "") != (o.LostValues == "") || !strings.Contains(o.LostValues, row.lost) {
				t.Errorf("%s: %q is lost, want %q", row.reason, o.LostValues, row.lost)
			}
			if !strings.Contains(o.Message, o.LostValues) {
				t.Errorf("the message does not say so: %s", o.Message)
			}
			for i, old := range decide.Decide(p.Settings, in).Leftovers {
				if kept := old.Action == operator.ActionRelease; kept != (row.lost != "" && (!row.left[i].Certain || row.several)) {
					t.Errorf("what may have the value is kept: %t, %s", kept, old.Message)
				}
			}
		})
	}
}

// TestDroppedKeys: a key of a Secret that a changed config gives no more is a loss, unless its value moves to a new
// key.
func TestDroppedKeys(t *testing.T) {
	const other = "another hash"
	for _, row := range []struct {
		reason, hash string
		has          []string
		lacks        bool // the generated key
		renamed      bool // the Secret
		more         int  // generated keys that are missing
		observed     int64
		lost         string
	}{
		{"a generated key was renamed, and nothing else", hash, []string{"old", "user"}, true, false, 0, 2, ""},
		{"a generated key was renamed, and something else has changed", other, []string{"old", "user"}, true, false, 0, 2,
			"a new random value for data.password: data.old goes, which nothing gives any more"},
		{"a generated key was replaced by two", hash, []string{"old", "user"}, true, false, 1, 2, "data.old goes, which nothing gives any more"},
		{"generated was removed", hash, []string{"old", "password", "user"}, false, false, 0, 2, "data.old goes, which nothing gives any more"},
		{"two keys were renamed", hash, []string{"old", "older", "user"}, true, false, 0, 2, "data.old, data.older goes"},
		{"a generated key was renamed, and the upstream edited before that was done", other, []string{"old", "user"}, true, false, 0, 1,
			"a new random value for data.password: data.old goes, which nothing gives any more"},
		{"the upstream was edited, which may remove what it gives", other, []string{"old", "password", "user"}, false, false, 0, 1, ""},
		{"another value", other, []string{"password", "user"}, false, false, 0, 2, ""},
		{"a generated key and the Secret were renamed", other, []string{"old", "user"}, true, true, 0, 2,
			"a new random value for data.password: data.old goes, which nothing gives any more"},
		{"a Secret was renamed", other, []string{"password", "user"}, false, true, 0, 2, ""},
		{"a new key", other, []string{"user"}, true, false, 0, 2, ""},
	} {
		p := secretPipeline(1, false)
		live := ourLive()
		live.Hash, live.Secret, live.Initial = row.hash, &drift.Secret{Keys: row.has}, []drift.InitialField{{Present: !row.lacks, Ours: !row.lacks}}
		d := p.Downstreams[0]
		d.Generated = append(d.Generated, make([]operator.GeneratedField, row.more)...)
		d.View.Generated, d.View.Initial = 1+row.more, make([]fieldpath.Path, 1+row.more)
		live.Initial = append(live.Initial, make([]drift.InitialField, row.more)...)
		want := operator.DesiredObject{Wanted: true, Target: target, Hash: hash, Sum: canonical.Digest("new"), Secret: &drift.Secret{Keys: []string{"password", "user"}}}
		in := operator.Input{Upstream: upstreamObject(), Selected: true, Now: now, Desired: &operator.Desired{Objects: []operator.DesiredObject{want}}, Facts: []operator.Facts{{Live: live}}}
		observed(in.Upstream, row.observed)
		o := decide.Decide(p.Settings, in).Outcomes[0]
		if row.renamed {
			in.Facts, in.Leftovers = []operator.Facts{{}}, []operator.Owned{{Live: live, Certain: true}}
			live.Name, o = "old", decide.Decide(p.Settings, in).Outcomes[0]
		}
		if (o.Action == operator.ActionCreate) != row.renamed || (row.lost == "") != (o.LostValues == "") || !strings.Contains(o.LostValues, row.lost) || !strings.Contains(o.Message, row.lost) {
			t.Errorf("%s: %s, %q is lost: %s", row.reason, o.Action, o.LostValues, o.Message)
		}
	}
}

// TestLeftoversAsTheirWatchSeesThem: two downstreams of one kind see each object of the other, without what their own
// config leaves out. What a Secret is compared by comes from the watch of its own downstream.
func TestLeftoversAsTheirWatchSeesThem(t *testing.T) {
	p := secretPipeline(2, false)
	byFirst, byOwn := ourLive(), ourLive()
	byOwn.Secret = &drift.Secret{Content: canonical.Digest("own")}
	recorded := p.RecordAt(p.Downstreams[1].Downstream, operator.RefOf(byOwn), byOwn.UID, "", "")
	left := decide.Leftovers(p.Settings, upstreamUID, nil, [][]*drift.Live{{byFirst}, {byOwn}}, []status.Recorded{recorded}, map[types.UID]int{byOwn.UID: 1})
	if len(left) != 1 || left[0].Downstream != 1 || left[0].Live != byOwn {
		t.Errorf("left over is %+v", left)
	}
}

// TestRenamedGeneratedKeys: the hash of a Secret says which of its keys were generated. So the value of one goes to the
// one that replaces it, whoever owns it and whatever else has changed, and no other value does. Where that cannot be
// seen, it is announced.
func TestRenamedGeneratedKeys(t *testing.T) {
	const lost, goes, unclear = "a new random value for data.", "data.old goes", "replaces data.old cannot be told"
	for _, row := range []struct {
		reason, before, now string // generated keys
		has, others         string // keys of the object: ours, and those of other managers
		edited, replaced    bool
		renamed             string
		lost                string // empty: nothing is
	}{
		{"a rename", "old", "new", "old user", "", false, false, "old new", ""},
		{"somebody rotated the value, so it is theirs", "old", "new", "user", "old", false, false, "old new", ""},
		{"so is another key", "old", "new", "user", "note old other", false, false, "old new", ""},
		{"the upstream was edited, which drops what it gave", "old", "new", "gone old user", "", true, false, "old new", ""},
		{"the config drops another key as well", "old", "new", "gone old user", "", false, false, "old new", "data.gone goes"},
		{"an edit, and the value is theirs", "old", "new", "gone user", "old", true, false, "old new", ""},
		{"one of several", "a b old", "b new a", "a b old user", "note", false, false, "old new", ""},
		{"another one lacks, to be rotated", "a old", "a new", "old user", "", false, false, "old new", ""},
		{"the Secret was renamed, too", "old", "new", "old user", "", false, true, "old new", ""},
		{"the Secret was renamed, too, and the value is theirs", "old", "new", "user", "old", false, true, "old new", ""},
		{"a key was removed, to be rotated", "new", "new", "user", "note", false, false, "", ""},
		{"one was removed, and the edit drops another", "new", "new", "gone user", "note", true, false, "", ""},
		{"a new one, beside a key of others", "a", "a new", "a user", "note", false, false, "", ""},
		{"two new ones, beside a key of others", "a", "a b new", "a user", "note", false, false, "", ""},
		{"the first one, beside a key of others", "", "new", "user", "note", false, false, "", ""},
		{"two were replaced by one", "a old", "new", "a old user", "", false, false, "", lost + "new: data.a, data.old goes"},
		{"two were replaced by one, and the upstream was edited", "a old", "new", "a gone old user", "", true, false, "", lost + "new: data.a, data.old goes"},
		{"one was replaced by two", "old", "b new", "old user", "", false, false, "", lost + "b, data.new: " + goes},
		{"one of others was replaced by two", "old", "b new", "user", "note old", false, false, "", unclear},
		{"more has changed than can be told", "a b old", "c new", "user", "a b old", false, false, "", "replaces data.a, data.b, data.old cannot be told"},
		{"one of others is kept", "a old", "a", "a user", "old", false, false, "", ""},
		{"one was dropped, and the upstream edited", "a old", "a", "a gone old user", "", true, false, "", goes + ", which"},
		{"the last one was dropped, and the upstream edited", "old", "", "gone old user", "", true, false, "", goes + ", which"},
	} {
		d := func(keys string) *operator.Downstream {
			d := secretPipeline(1, false).Downstreams[0].Downstream
			d.Generated = nil
			for _, key := range strings.Fields(keys) {
				d.Generated = append(d.Generated, operator.GeneratedField{Key: key, Length: 32, Characters: "ab"})
			}
			return d
		}
		p, live := secretPipeline(1, false), ourLive()
		to := d(row.now)
		n := len(to.Generated)
		p.Downstreams[0].Generated, p.Downstreams[0].View.Generated, p.Downstreams[0].View.Initial = to.Generated, n, make([]fieldpath.Path, n)
		live.Secret = &drift.Secret{Keys: strings.Fields(row.has), Others: strings.Fields(row.others)}
		live.Hash = generated.HashOf(d(row.before), hash+"0", nil)
		for _, g := range to.Generated {
			live.Initial = append(live.Initial, drift.InitialField{Present: slices.Contains(strings.Fields(row.has+" "+row.others), g.Key)})
		}
		want := operator.DesiredObject{Wanted: true, Target: target, Hash: generated.HashOf(to, hash, nil), Sum: canonical.Digest("new"), Secret: generated.SecretKeys(to, map[string]any{"data": map[string]any{"user": "x"}})}
		in := operator.Input{Upstream: upstreamObject(), Selected: true, Now: now, Desired: &operator.Desired{Objects: []operator.DesiredObject{want}}, Facts: []operator.Facts{{Live: live}}}
		observed(in.Upstream, map[bool]int64{true: 1, false: 2}[row.edited])
		if row.replaced {
			in.Facts, in.Leftovers = []operator.Facts{{}}, []operator.Owned{{Live: live, Certain: true}}
			live.Name = "former"
		}
		o := decide.Decide(p.Settings, in).Outcomes[0]
		if (row.lost == "") != (o.LostValues == "") || !strings.Contains(o.LostValues, row.lost) || !strings.Contains(o.Message, o.LostValues) {
			t.Errorf("%s: %s, %q is lost: %s", row.reason, o.Action, o.LostValues, o.Message)
		}
		renamed := ""
		if c := generated.ChangeOf(to, &want, live); c.Renamed() {
			renamed = c.Dropped[0] + " " + c.Added[0]
		}
		if renamed != row.renamed {
			t.Errorf("%s: renamed is %q", row.reason, renamed)
		}
	}
}
