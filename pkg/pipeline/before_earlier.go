package pipeline

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/drift"
)

// EarlierBeforeLive is the live object of an earlier deletion.before, with what says whether it has finished.
func (p *Pipeline) EarlierBeforeLive(obj *unstructured.Unstructured) (*drift.Live, error) {
	v := p.beforeView("status", "conditions")
	return v.Live(obj)
}
