package drift

import (
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/redact"
)

// View says what of a live downstream is kept in memory. Two views with one ID keep the same and can share a watch. A
// View is not changed once it is in use.
type View struct {
	// Manager is the field manager whose entry the projection follows.
	Manager string
	// Hash is where the hash rides.
	Hash Key
	// OwnerAnnotation is the annotation that names the owner where no reference is legal; "" for none.
	OwnerAnnotation string
	// Initial are set at creation, then left to others: they are no part of P.
	Initial []fieldpath.Path
	// Generated is how many of Initial, the last ones, hold random values: those are not kept in memory.
	Generated int
	// Exclusive are maps in which keys that others add are drift too: they are whole in P.
	Exclusive []fieldpath.Path
	// Keep are the chains of fields, from the object's root, that expressions read; they end up in Live.Kept.
	Keep [][]string
	// KeepWhole keeps the whole object, but for its managedFields.
	KeepWhole bool
	// Adopt are field managers whose entries are to become ours, beside Previous.Manager.
	Adopt []string
	// Words are all that differences show of an object that can hold values of a Secret; nil: they show it. They change
	// nothing of what is kept, and are no part of the ID.
	Words redact.Words
	// Previous are the names of conventions.previous.
	Previous Previous
}

// Previous are the names of conventions.previous, which objects of ours may still use. Each may be empty; none is a current
// name of the view.
type Previous struct {
	// Manager is the previous field manager.
	Manager string
	// Hash is the previous key of the hash.
	Hash Key
	// OwnerAnnotation is the previous key of the owner annotation.
	OwnerAnnotation string
}

// TakeoverManagers lists the field managers whose fields we take over.
func (v *View) TakeoverManagers() []string {
	if v.Previous.Manager == "" {
		return v.Adopt
	}
	return append([]string{v.Previous.Manager}, v.Adopt...)
}

// ID returns a digest of what the view says. The order of its lists does not count.
func (v *View) ID() string {
	keep := make(map[string]any, len(v.Keep))
	for _, chain := range v.Keep {
		keep[fieldpath.New(chain...).String()] = true
	}
	return Digest(map[string]any{
		"manager":         v.Manager,
		"hashAnnotation":  v.Hash.Annotation,
		"hashLabel":       v.Hash.Label,
		"ownerAnnotation": v.OwnerAnnotation,
		"initial":         pathList(v.Initial), // ordered: Live.Initial has the same order
		"generated":       int64(v.Generated),
		"exclusive":       pathSet(v.Exclusive),
		"keep":            keep,
		"whole":           v.KeepWhole,
		"adopt":           textSet(v.Adopt),
		"previous": map[string]any{
			"manager":         v.Previous.Manager,
			"hashAnnotation":  v.Previous.Hash.Annotation,
			"hashLabel":       v.Previous.Hash.Label,
			"ownerAnnotation": v.Previous.OwnerAnnotation,
		},
	}).String()
}

func textSet(texts []string) map[string]any {
	out := make(map[string]any, len(texts))
	for _, text := range texts {
		out[text] = true
	}
	return out
}

func pathList(paths []fieldpath.Path) []any {
	out := make([]any, len(paths))
	for i, p := range paths {
		out[i] = p.String()
	}
	return out
}

func pathSet(paths []fieldpath.Path) map[string]any {
	out := make(map[string]any, len(paths))
	for _, p := range paths {
		out[p.String()] = true
	}
	return out
}

// Transform returns a function of the shape of client-go's cache.TransformFunc: an *unstructured.Unstructured becomes
// its *Live, anything else (a *Live that was transformed before, a tombstone) passes through. It gives no error, since an
// informer would drop the object. It does not change the object that it is given.
func (v *View) Transform() func(any) (any, error) {
	return func(obj any) (any, error) {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok || u == nil {
			return obj, nil
		}
		return v.live(u), nil
	}
}

// errNothing is the caller's mistake.
var errNothing = errors.New("reading a live object: it is nil")

// Live returns what the view keeps of u. It fails only where there is no object at all: whatever an object says, it has a
// Live. The result shares no memory with u.
func (v *View) Live(u *unstructured.Unstructured) (*Live, error) {
	if u == nil || u.Object == nil {
		return nil, errNothing
	}
	return v.live(u), nil
}
