package drift

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/redact"
)

// View says what is kept of a live downstream. Two views with the same ID keep the same and can share a watch. A View
// is not changed once it is in use.
type View struct {
	// Manager is the field manager whose entry gives the projection.
	Manager string
	// Hash is the key of the hash.
	Hash Key
	// OwnerAnnotation is the annotation with the owner if a reference is not legal; "" for none.
	OwnerAnnotation string
	// NameAnnotation is the annotation with the name of the downstream in the config; "" for none.
	NameAnnotation string
	// Initial are fields that are set at creation and then left to others: they are not part of P.
	Initial []fieldpath.Path
	// Generated is the number of Initial fields, at the end, that have random values: those are not kept in memory.
	Generated int
	// Aside are fields that we apply and that say nothing of the desired state: they are not part of P, and never drift.
	Aside []fieldpath.Path
	// Exclusive are maps in which keys that others add are drift too: P includes them as a whole.
	Exclusive []fieldpath.Path
	// Keep are the chains of fields, from the root, that expressions read; they are in Live.Kept.
	Keep [][]string
	// KeepWhole keeps the whole object without its managedFields.
	KeepWhole bool
	// Adopt are field managers whose entries must become ours, in addition to Previous.Manager.
	Adopt []string
	// Words are the words that differences may show of an object with values of a Secret; nil means everything. They do
	// not change what is kept, and are not part of the ID.
	Words redact.Words
	// Previous are the names of conventions.previous.
	Previous Previous
}

// Previous are the names of conventions.previous, which our objects may still use. Each may be empty; none is a current
// name of the view.
type Previous struct {
	// Manager is the previous field manager.
	Manager string
	// Hash is the previous key of the hash.
	Hash Key
	// OwnerAnnotation is the previous key of the owner annotation.
	OwnerAnnotation string
}

// leftOut are the fields that are not part of P.
func (v *View) leftOut() []fieldpath.Path {
	if len(v.Aside) == 0 {
		return v.Initial
	}
	return slices.Concat(v.Initial, v.Aside)
}

// TakeoverManagers returns the field managers whose fields we take over.
func (v *View) TakeoverManagers() []string {
	if v.Previous.Manager == "" {
		return v.Adopt
	}
	return append([]string{v.Previous.Manager}, v.Adopt...)
}

// ID returns a digest of the view. The order of its lists does not count.
func (v *View) ID() string {
	keep := make(map[string]any, len(v.Keep))
	for _, chain := range v.Keep {
		keep[fieldpath.New(chain...).String()] = true
	}
	return canonical.Digest(map[string]any{
		"manager":         v.Manager,
		"hashAnnotation":  v.Hash.Annotation,
		"hashLabel":       v.Hash.Label,
		"ownerAnnotation": v.OwnerAnnotation,
		"nameAnnotation":  v.NameAnnotation,
		"initial":         pathList(v.Initial), // ordered: Live.Initial has the same order
		"generated":       int64(v.Generated),
		"aside":           pathSet(v.Aside),
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

// Transform returns a cache.TransformFunc of client-go: it converts an *unstructured.Unstructured to its *Live and
// returns everything else (an existing *Live, a tombstone) unchanged. It never returns an error, because an informer
// would drop the object, and never changes its argument.
func (v *View) Transform() func(any) (any, error) {
	return func(obj any) (any, error) {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok || u == nil {
			return obj, nil
		}
		return v.live(u), nil
	}
}

// Live returns what the view keeps of u. The result shares no memory with u.
func (v *View) Live(u *unstructured.Unstructured) *Live { return v.live(u) }
