package status_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/status"
)

var types = status.Types{Ready: "Ready", Valid: "Valid", Reconciling: "Reconciling", Stalled: "Stalled"}

func ready(name string) status.Fact { return status.Fact{Name: name, Ready: true} }
func waiting(name string) status.Fact {
	return status.Fact{Name: name, Progressing: true, Reason: "Progressing", Message: "not yet"}
}
func failed(name string) status.Fact {
	return status.Fact{Name: name, Failed: true, Reason: "Failed", Message: "never"}
}

// lines returns the conditions, one per line.
func lines(list []metav1.Condition) string {
	var b strings.Builder
	for _, c := range list {
		fmt.Fprintf(&b, "%s %s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	return b.String()
}

// verdict returns what kstatus reads from an upstream with these conditions.
func verdict(t *testing.T, conditions []metav1.Condition) kstatus.Status {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "tools.example.com/v1", "kind": "Thing",
		"metadata": map[string]any{"name": "a", "generation": int64(3)},
		"status":   map[string]any{"observedGeneration": int64(3), "conditions": status.Merge(nil, conditions, nil, metav1.Now())},
	}}
	r := must.Get(kstatus.Compute(u)).In(t)
	return r.Status
}

func TestSummarize(t *testing.T) {
	for name, test := range map[string]struct {
		reason string
		in     status.Summary
		want   string
		reads  kstatus.Status
	}{
		"all ready": {
			reason: "Ready is True when every wanted downstream is; Reconciling and Stalled are absent, not False",
			in:     status.Summary{Types: types, Downstreams: []status.Fact{ready("b"), ready("a")}},
			want:   "Ready True Ready: \nValid True Valid: \n", reads: kstatus.CurrentStatus,
		},
		"nothing wanted": {
			reason: "an upstream that asks for nothing has all that it asks for",
			in:     status.Summary{Types: types},
			want:   "Ready True Ready: \nValid True Valid: \n", reads: kstatus.CurrentStatus,
		},
		"one waits": {
			reason: "one that is on its way makes all Reconciling",
			in:     status.Summary{Types: types, Downstreams: []status.Fact{ready("a"), waiting("b")}},
			want:   "Ready False Progressing: b: not yet\nValid True Valid: \nReconciling True Progressing: b: not yet\n", reads: kstatus.InProgressStatus,
		},
		"one failed": {
			reason: "one that gets no further makes all Stalled; what waits is told too, and Reconciling is left out",
			in:     status.Summary{Types: types, Downstreams: []status.Fact{waiting("c"), failed("b"), ready("a")}},
			want:   "Ready False Failed: b: never; c: not yet\nValid True Valid: \nStalled True Failed: b: never; c: not yet\n", reads: kstatus.FailedStatus,
		},
		"invalid": {
			reason: "an invalid upstream is Stalled whatever its downstreams do; every message is told, sorted",
			in:     status.Summary{Types: types, Invalid: []string{"z must be set", "a is too large"}, Downstreams: []status.Fact{waiting("a")}},
			want: "Ready False Invalid: a is too large; z must be set\nValid False Invalid: a is too large; z must be set\n" +
				"Stalled True Invalid: a is too large; z must be set\n", reads: kstatus.FailedStatus,
		},
		"reason of the first by name": {
			reason: "of equals the first by name gives the reason, so that it does not flap with their order",
			in: status.Summary{Types: types, Downstreams: []status.Fact{
				{Name: "b", Progressing: true, Reason: "Forbidden"}, {Name: "a", Progressing: true, Reason: "Throttled"}}},
			want: "Ready False Throttled: \nValid True Valid: \nReconciling True Throttled: \n", reads: kstatus.InProgressStatus,
		},
		"refused": {
			reason: "a refused request is worse than what is only on its way, whichever comes first",
			in: status.Summary{Types: types, Downstreams: []status.Fact{waiting("a"),
				{Name: "b", Progressing: true, Reason: "Rejected", Message: "too large"}, waiting("c")}},
			want: "Ready False Rejected: a: not yet; b: too large; c: not yet\nValid True Valid: \n" +
				"Reconciling True Rejected: a: not yet; b: too large; c: not yet\n", reads: kstatus.InProgressStatus,
		},
		"no reason": {
			reason: "a condition without a reason is refused by the API server",
			in:     status.Summary{Types: types, Downstreams: []status.Fact{{Name: "a"}}},
			want:   "Ready False Progressing: \nValid True Valid: \nReconciling True Progressing: \n", reads: kstatus.InProgressStatus,
		},
		"failed without a reason": {
			reason: "as above",
			in:     status.Summary{Types: types, Downstreams: []status.Fact{{Name: "a", Failed: true}}},
			want:   "Ready False Failed: \nValid True Valid: \nStalled True Failed: \n", reads: kstatus.FailedStatus,
		},
		"ready with a word": {
			reason: "a downstream that is ready and yet has something to say, such as reported drift, says it",
			in:     status.Summary{Types: types, Downstreams: []status.Fact{ready("a"), {Name: "b", Ready: true, Reason: "Drifted", Message: "has drifted"}}},
			want:   "Ready True Drifted: b: has drifted\nValid True Valid: \n", reads: kstatus.CurrentStatus,
		},
		"other names": {
			reason: "the config chooses the types",
			in:     status.Summary{Types: status.Types{Ready: "Synced", Valid: "Accepted", Stalled: "Stuck"}, Downstreams: []status.Fact{failed("a")}},
			want:   "Synced False Failed: a: never\nAccepted True Valid: \nStuck True Failed: a: never\n", reads: kstatus.CurrentStatus,
		},
		"ready alone": {
			reason: "types without a name are not written; without Stalled a failure reads as InProgress, all that Ready can say",
			in:     status.Summary{Types: status.Types{Ready: "Ready"}, Downstreams: []status.Fact{failed("a")}},
			want:   "Ready False Failed: a: never\n", reads: kstatus.InProgressStatus,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := status.Summarize(test.in)
			must.Same(t, test.want, lines(got), test.reason)
			must.Same(t, test.reads, verdict(t, got), test.reason, "kstatus reads")
		})
	}
}

// TestSummarizeHolds: for any facts, in any order, the conditions are valid for the API server, are the same, and have
// the right kstatus.
func TestSummarizeHolds(t *testing.T) {
	reason := regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`) // the pattern of metav1.Condition
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		in := status.Summary{Generation: 7, Types: types}
		for i := range random.IntN(5) {
			f := []func(string) status.Fact{ready, waiting, failed}[random.IntN(3)](fmt.Sprintf("d%d", i))
			f.Message = strings.Repeat("é☃\xff", random.IntN(900))
			in.Downstreams = append(in.Downstreams, f)
		}
		for range random.IntN(2) * random.IntN(3) {
			in.Invalid = append(in.Invalid, strings.Repeat("ü", random.IntN(3000)))
		}
		got := status.Summarize(in)
		shuffled := in
		shuffled.Downstreams = append([]status.Fact(nil), in.Downstreams...)
		random.Shuffle(len(shuffled.Downstreams), func(i, j int) {
			shuffled.Downstreams[i], shuffled.Downstreams[j] = shuffled.Downstreams[j], shuffled.Downstreams[i]
		})
		if diff := cmp.Diff(got, status.Summarize(shuffled)); diff != "" {
			t.Fatalf("the order of downstreams counts:\n%s", diff)
		}
		seen := map[string]metav1.ConditionStatus{}
		for _, c := range got {
			if seen[c.Type] = c.Status; !reason.MatchString(c.Reason) || len(c.Message) > 2048 || !utf8.ValidString(c.Message) || c.ObservedGeneration != 7 || !c.LastTransitionTime.IsZero() {
				t.Fatalf("%+v", c)
			}
		}
		if seen["Reconciling"] != "" && seen["Stalled"] != "" || seen["Reconciling"] == "False" || seen["Stalled"] == "False" {
			t.Fatalf("conditions %v", seen)
		}
		want := kstatus.InProgressStatus
		switch {
		case seen["Ready"] == "True":
			want = kstatus.CurrentStatus
		case seen["Stalled"] == "True":
			want = kstatus.FailedStatus
		}
		if reads := verdict(t, got); reads != want {
			t.Fatalf("kstatus reads %s, want %s: %v", reads, want, seen)
		}
	}
}

// TestPausedIsNotReconciling: nothing is in progress while paused.
func TestPausedIsNotReconciling(t *testing.T) {
	got := status.Summarize(status.Summary{Types: types, Held: "paused: x is true",
		Downstreams: []status.Fact{{Name: "a", Progressing: true, Reason: "Paused", Message: "nothing"}}})
	must.Same(t, "Ready False Paused: paused: x is true; a: nothing\nValid True Valid: \n", lines(got))
}

// TestRefused: fields that cannot be stored are added to the message, and are the reason if there is no other.
func TestRefused(t *testing.T) {
	for want, facts := range map[string][]status.Fact{
		"Ready True StatusFieldRefused: .status.a":        {{Name: "a", Ready: true, Reason: "Ready"}},
		"Ready True StatusFieldRefused: b: ok; .status.a": {{Name: "b", Ready: true, Message: "ok"}},
		"Ready True Drifted: b: a key; .status.a":         {{Name: "b", Ready: true, Reason: "Drifted", Message: "a key"}},
		"Ready False RenderFailed: b: no; .status.a":      {{Name: "b", Failed: true, Reason: "RenderFailed", Message: "no"}},
	} {
		in := status.Summary{Types: status.Types{Ready: "Ready"}, Downstreams: facts, Refused: ".status.a"}
		must.Same(t, want+"\n", lines(status.Summarize(in)))
	}
}

func TestShorten(t *testing.T) {
	for _, row := range []struct {
		text string
		most int
		want string
	}{{"short", 5, "short"}, {"too long", 7, "too …"}, {"äöüß", 6, "ä …"}, {"abc", 2, "ab"}, {"ä", 1, ""}, {"a\xffb", 10, "a�b"}, {"a", 0, ""}} {
		must.Same(t, row.want, status.Shorten(row.text, row.most), "Shorten(", row.text, row.most, ")")
	}
}
