package status

import (
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Types are the condition types that are written; one that is empty is not.
type Types struct {
	Ready, Valid, Reconciling, Stalled string
}

// Fact is what one wanted downstream contributes. At most one of Ready, Failed and Progressing is true.
type Fact struct {
	// Name is the downstream's in the config.
	Name string
	// Ready: it stands and is ready.
	Ready bool
	// Failed: it gets no further until somebody does something.
	Failed bool
	// Progressing: it is on its way, or is tried again.
	Progressing bool
	// Reason is one of the documented words; where it is empty, ReasonReady, ReasonFailed or ReasonProgressing stands in,
	// for a condition must have one. Message is for people.
	Reason  string
	Message string
}

// Summary is what the conditions follow from.
type Summary struct {
	// Generation of the upstream that the conditions speak of; 0 where the kind has none.
	Generation int64
	Types      Types
	// Invalid has a message for each rule that does not hold.
	Invalid []string
	// Paused: the upstream has the pause annotation.
	Paused bool
	// Downstreams are the wanted ones.
	Downstreams []Fact
	// Refused says which values of the config's own fields the status lacks; empty if it has all.
	Refused string
}

// maxMessage bounds a message: the API allows 32 KiB, people read less.
const maxMessage = 2048

// Summarize gives the conditions, without transition times. Ready and Valid are always there; Reconciling and Stalled only
// while true, and never both, as kstatus and those who build on it expect: Ready True reads Current, Stalled reads Failed,
// and anything else InProgress. Equal input gives equal messages: they are sorted and hold no times.
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
		out = append(out, metav1.Condition{Type: in.Types.Stalled, Status: metav1.ConditionTrue, Reason: ready.Reason, Message: ready.Message})
	case rank == rankProgressing && !in.Paused && ready.Reason != ReasonObserved:
		out = append(out, metav1.Condition{Type: in.Types.Reconciling, Status: metav1.ConditionTrue, Reason: ready.Reason, Message: ready.Message})
	}
	if in.Refused != "" {
		out[0].Message = strings.Join(slices.DeleteFunc([]string{ready.Message, join([]string{in.Refused})}, isEmpty), "; ")
	}
	return written(out, in.Generation)
}

// Verdict is what Ready says, whether or not a condition of that type is written. Its zero value says nothing.
type Verdict struct {
	Ready metav1.ConditionStatus
	// Reason is one of the documented words.
	Reason string
}

// Verdict reports whether the upstream is ready, and why: for being invalid, else as its worst downstream says.
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

// reason is f's word, or the one for its rank where it has none.
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

// isPlain tells whether the reason of f says no more than its rank does: a refused request, say, says more than Progressing.
func (f Fact) isPlain() bool {
	return slices.Contains([]string{"", ReasonReady, ReasonProgressing, ReasonFailed}, f.Reason)
}

// Worst is the worst fact; among equals one with a reason of its own, and then the first by name.
func Worst(facts []Fact) Fact {
	worst, _ := worstOf(facts)
	return worst
}

// worstOf finds the worst fact; among equals one with a reason of its own, and then the first by name.
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

// messages joins what the facts below a rank say, sorted by name.
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

// Shorten cuts a message to so many bytes, and to valid UTF-8.
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

// written leaves out the types that the config does not name.
func written(all []metav1.Condition, generation int64) []metav1.Condition {
	var out []metav1.Condition
	for _, c := range all {
		if c.Type != "" {
			c.ObservedGeneration = generation
			out = append(out, c)
		}
	}
	return out
}
