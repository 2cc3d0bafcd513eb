package clusters

import (
	"fmt"
	"slices"
	"time"
)

// NoToken is the token of a write that carries none, such as one of a status.
const NoToken = -1

// Write is a write that an API server received from an operator.
type Write struct {
	At      time.Time
	Cluster string
	Token   int64
	What    string
}

func (w Write) String() string {
	return fmt.Sprintf("%s %s token %d: %s", w.At.Format("15:04:05.000000"), w.Cluster, w.Token, w.What)
}

// Check returns what is wrong with the writes of all clusters: a write with an older token after one with a newer
// token, one token in two clusters, or a write without a token at a time when another cluster was active, however the
// cluster's own activity before and after is read.
func Check(writes []Write) []string {
	writes = slices.Clone(writes)
	slices.SortStableFunc(writes, func(a, b Write) int { return a.At.Compare(b.At) })
	var wrong []string
	newest, owners := Write{Token: NoToken}, map[int64]string{}
	for _, w := range writes {
		if w.Token == NoToken {
			continue
		}
		if owner, ok := owners[w.Token]; ok && owner != w.Cluster {
			wrong = append(wrong, fmt.Sprintf("%s: the token is that of %s", w, owner))
		}
		owners[w.Token] = w.Cluster
		if w.Token < newest.Token {
			wrong = append(wrong, fmt.Sprintf("%s: after %s", w, newest))
		} else {
			newest = w
		}
	}
	for i, w := range writes {
		if w.Token == NoToken && !plausible(writes, i) {
			wrong = append(wrong, fmt.Sprintf("%s: another cluster was active", w))
		}
	}
	return wrong
}

// plausible reports whether a write without a token may have had that of the cluster's write before it, or after it.
func plausible(writes []Write, i int) bool {
	w := writes[i]
	own := func(x Write) bool { return x.Cluster == w.Cluster && x.Token != NoToken }
	var candidates []int64
	for k := i - 1; k >= 0; k-- {
		if own(writes[k]) {
			candidates = append(candidates, writes[k].Token)
			break
		}
	}
	for _, x := range writes[i+1:] {
		if own(x) {
			candidates = append(candidates, x.Token)
			break
		}
	}
	for _, token := range candidates {
		fits := true
		for k, x := range writes {
			if x.Cluster != w.Cluster && x.Token != NoToken {
				fits = fits && (k < i && x.Token < token || k > i && x.Token > token)
			}
		}
		if fits {
			return true
		}
	}
	return false
}
