package reconcile

import "github.com/corollary-dev/corollary/pkg/reconcile/departures"

// leaving is what is known of upstreams that go. The watches note what they show of it.
type leaving struct {
	Cascades      departures.Cascades
	Deselected    departures.Deselected
	leftBehind    departures.LeftBehind
	lostUpstreams departures.LostUpstreams
}
