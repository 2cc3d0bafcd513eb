package status

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Types are the condition types to write; an empty one is not written.
type Types struct {
	Ready, Valid, Reconciling, Stalled string
}

// Fact is the state of one wanted downstream. At most one of Ready, Failed and Progressing is true.
type Fact struct {
	// Name is the name of the downstream in the config.
	Name string
	// Ready means that it exists and is ready.
	Ready bool
	// Failed means that it needs someone to fix it.
	Failed bool
	// Progressing means that it is not ready yet, or is retried.
	Progressing bool
	// Reason is a documented reason; if it is empty, ReasonReady, ReasonFailed or ReasonProgressing is used. Message is
	// for people.
	Reason  string
	Message string
}

// Summary is the input of Summarize.
type Summary struct {
	// Generation is the generation of the upstream; 0 if the kind has none.
	Generation int64
	Types      Types
	// Invalid has a message for each violated rule.
	Invalid []string
	// Held says what keeps the operator from acting for the upstream, for the message of Ready; empty if nothing holds it.
	Held string
	// Downstreams are the wanted ones.
	Downstreams []Fact
	// Refused says which status.fields cannot be stored; empty if all can.
	Refused string
}

// maxMessage limits a message: the API allows 32 KiB, people read less.
const maxMessage = 2048

// Summarize returns the conditions, without transition times. Ready and Valid always exist; Reconciling and Stalled
// only while true, and never both, as kstatus expects. Equal input gives equal messages: they are sorted and contain no
// times.
func Summarize(in Summary) []metav1.Condition {
	verdict := in.Verdict()
	ready := metav1.Condition{Type: in.Types.Ready, Status: verdict.Ready, Reason: verdict.Reason}
	valid := metav1.Condition{Type: in.Types.Valid, Status: metav1.ConditionTrue, Reason: ReasonValid}
	_, rank := worstOf(in.Downstreams)
	switch {
	case len(in.Invalid) > 0:
		message := join(in.Invalid)
		ready.Message = message
		valid.Status, valid.Reason, valid.Message = metav1.ConditionFalse, ReasonInvalid, message
	case rank < rankReady:
		ready.Message = messages(in.Downstreams, rankReady)
	default:
		ready.Message = messages(in.Downstreams, rankReady+1)
	}
	out := []metav1.Condition{ready, valid}
	switch {
	case len(in.Invalid) > 0 || rank == rankFailed:
		out = append(out, metav1.Condition{Type: in.Types.Stalled, Status: metav1.ConditionTrue,
			Reason: ready.Reason, Message: ready.Message})
	case rank == rankProgressing && in.Held == "" && ready.Reason != ReasonObserved:
		out = append(out, metav1.Condition{Type: in.Types.Reconciling, Status: metav1.ConditionTrue,
			Reason: ready.Reason, Message: ready.Message})
	}
	if in.Refused != "" {
		out[0].Message = strings.Join(slices.DeleteFunc([]string{ready.Message, join([]string{in.Refused})}, isEmpty), "; ")
	}
	out[0].Message = Shorten(strings.Join(slices.DeleteFunc([]string{in.Held, out[0].Message}, isEmpty), "; "), maxMessage)
	return configured(out, in.Generation)
}

// Verdict is the content of Ready, whether or not that condition is written. The zero value is empty.
type Verdict struct {
	Ready metav1.ConditionStatus
	// Reason is a documented reason.
	Reason string
}

// Verdict returns whether the upstream is ready, and why: because it is invalid, else by its worst downstream.
func (in Summary) Verdict() Verdict {
	worst, rank := worstOf(in.Downstreams)
	switch {
	case len(in.Invalid) > 0:
		return Verdict{metav1.ConditionFalse, ReasonInvalid}
	case rank < rankReady:
		return Verdict{metav1.ConditionFalse, worst.reason()}
	case in.Refused != "" && (worst.Reason == "" || worst.Reason == ReasonReady):
		return Verdict{metav1.ConditionTrue, ReasonStatusFieldRefused}
	case worst.Reason != "":
		return Verdict{metav1.ConditionTrue, worst.Reason}
	}
	return Verdict{metav1.ConditionTrue, ReasonReady}
}

// Ranks order facts from worst to best.
const (
	rankFailed = iota
	rankProgressing
	rankReady
)

func rankOf(f Fact) int {
	switch {
	case f.Failed:
		return rankFailed
	case f.Ready:
		return rankReady
	}
	return rankProgressing
}

// reason returns the reason of f, or the default for its rank.
func (f Fact) reason() string {
	switch {
	case f.Reason != "":
		return f.Reason
	case f.Failed:
		return ReasonFailed
	case f.Ready:
		return ReasonReady
	}
	return ReasonProgressing
}

// isPlain reports whether the reason of f only repeats its rank: that of a refused request, for example, is more
// specific.
func (f Fact) isPlain() bool {
	return slices.Contains([]string{"", ReasonReady, ReasonProgressing, ReasonFailed}, f.Reason)
}

// Worst returns the worst fact; among equals one with a specific reason, then the first by name.
func Worst(facts []Fact) Fact {
	worst, _ := worstOf(facts)
	return worst
}

// worstOf returns the worst fact and its rank; among equals one with a specific reason, then the first by name.
func worstOf(facts []Fact) (worst Fact, rank int) {
	rank = rankReady
	sorted := append([]Fact(nil), facts...)
	sort.SliceStable(sorted, func(i, j int) bool { return sorted[i].Name < sorted[j].Name })
	for _, f := range sorted {
		r := rankOf(f)
		if r < rank || (r == rank && (worst.Name == "" || worst.isPlain() && !f.isPlain())) {
			worst, rank = f, r
		}
	}
	return worst, rank
}

// messages joins the messages of the facts below a rank, sorted by name.
func messages(facts []Fact, below int) string {
	var list []string
	for _, f := range facts {
		if rankOf(f) < below && f.Message != "" {
			list = append(list, f.Name+": "+f.Message)
		}
	}
	return join(list)
}

func isEmpty(s string) bool { return s == "" }

func join(list []string) string {
	sorted := append([]string(nil), list...)
	sort.Strings(sorted)
	return Shorten(strings.Join(sorted, "; "), maxMessage)
}

// few is how many names a message has.
const few = 5

// Few joins the first names of a list, and says how many more there are.
func Few(names []string) string {
	if more := len(names) - few; more > 0 {
		return strings.Join(names[:few], ", ") + fmt.Sprintf(", %d more", more)
	}
	return strings.Join(names, ", ")
}

// Shorten cuts a message to at most this many bytes, and to valid UTF-8.
func Shorten(text string, most int) string {
	text = strings.ToValidUTF8(text, "�")
	if len(text) <= most {
		return text
	}
	more := " …"
	if most < len(more) {
		more = ""
	}
	cut := most - len(more)
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + more
}

// configured removes the condition types that the config does not set.
func configured(all []metav1.Condition, generation int64) []metav1.Condition {
	var out []metav1.Condition
	for _, c := range all {
		if c.Type != "" {
			c.ObservedGeneration = generation
			out = append(out, c)
		}
	}
	return out
}
