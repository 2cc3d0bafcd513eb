package reconcile

import (
	"context"
	"crypto/rand"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// randomText makes a generated value. Each character is as likely as any other: bytes beyond the last whole multiple of their
// number are thrown away. crypto/rand never fails; it ends the process instead.
func randomText(g pipeline.GeneratedField) string {
	n := len(g.Characters)
	limit := 256 - 256%n
	out, buf := make([]byte, 0, g.Length), make([]byte, g.Length)
	for len(out) < g.Length {
		_, _ = rand.Read(buf)
		for _, b := range buf {
			if int(b) < limit && len(out) < g.Length {
				out = append(out, g.Characters[int(b)%n])
			}
		}
	}
	return string(out)
}

// readGenerated reads the live values that an apply sends, since they are not kept in memory. The outcome's Live is then of
// that reading. obj is one that was read before; nil if none was. ErrGone: there is no such object any more.
func (r *reconciliation) readGenerated(ctx context.Context, o pipeline.Outcome, obj *unstructured.Unstructured) (pipeline.Outcome, *unstructured.Unstructured, error) {
	d := r.Pipeline.Downstreams[o.Downstream]
	if o.Live == nil || !d.SendsGenerated(o.Live) {
		return o, obj, nil
	}
	if obj == nil {
		var err error
		if obj, err = r.client.Get(ctx, r.target(o.Downstream, o.Target)); err != nil {
			return o, nil, err
		}
		if obj.GetUID() != o.UID {
			return o, nil, apply.ErrGone
		}
	}
	live, err := d.View.Live(obj)
	if err == nil {
		o.Live = live
	}
	return o, obj, err
}

// keepGenerated remembers the generated values of an object that is about to be deleted to be created again: the new one gets them. They
// are lost if the process ends in between.
func (r *reconciliation) keepGenerated(ctx context.Context, o pipeline.Outcome) error {
	d, t := r.Pipeline.Downstreams[o.Downstream], &r.record.objects[o.Object].target
	if o.State != pipeline.StateRecreate || !d.HasGenerated() {
		return nil
	}
	obj, err := r.client.Get(ctx, r.target(o.Downstream, o.Target))
	switch {
	case errors.Is(err, apply.ErrGone):
	case err != nil:
		return err
	case obj.GetUID() == o.UID:
		t.unusual.edit().generated = d.GeneratedOf(obj)
	}
	return nil
}

// generatedText is the text of a generated value for a new object: that of the object that it replaces, or a random one.
func (t *target) generatedText(g pipeline.GeneratedField) string {
	if text, ok := t.unusual.get().generated[g.Key]; ok {
		return text
	}
	return randomText(g)
}

// dryRunDocument is the document of an apply by dry run.
func (r *reconciliation) dryRunDocument(ctx context.Context, w *pipeline.Desired, o pipeline.Outcome) (map[string]any, error) {
	o, held, err := r.readGenerated(ctx, o, nil)
	if err != nil {
		return nil, err
	}
	doc, err := r.document(w, o.Object, o.Live)
	if err != nil {
		return nil, err
	}
	return r.Pipeline.Downstreams[o.Downstream].Fill(doc, o.Live, held, randomText), nil
}
