package drift

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/drift/managed"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// Unlike is a field in which an object differs from a new one.
type Unlike struct {
	Path fieldpath.Path
	// Live and New are the values, where Lives and Made are true; null is a value.
	Live, New   any
	Lives, Made bool
	// Ours means that we own the field.
	Ours bool
	// Manager is another owner of the field if we do not own it: then the difference is its doing. It is "" for a field
	// without an owner, which has a value that the API server derived.
	Manager string
}

// UnlikeNew returns how live differs from created, the result of a dry-run create of our document, apart from metadata,
// status, fields that are not part of P and values that the API server allocates. It is sorted by path.
func UnlikeNew(live, created *unstructured.Unstructured, v *View) []Unlike {
	es := managed.Entries(live)
	u := unlikeFinder{es: es, our: managed.Find(es, v.Manager)}
	aside := append(slices.Clone(v.leftOut()), allocated[live.GroupVersionKind().GroupKind()]...)
	root := managed.OwnersOf(es)
	for _, key := range keysOf(live.Object, created.Object) {
		if key != "apiVersion" && key != "kind" && key != "metadata" && key != "status" {
			u.field(key, live.Object, created.Object, root, nil)
		}
	}
	found := slices.DeleteFunc(u.found, func(f Unlike) bool {
		return slices.ContainsFunc(aside, func(p fieldpath.Path) bool { return matches(f.Path, p) })
	})
	slices.SortFunc(found, func(a, b Unlike) int { return fieldpath.Compare(a.Path, b.Path) })
	return found
}

// allocated are values that the API server chooses for each object, of which a dry run shows others, and those of a
// subresource that has no field manager.
var allocated = map[schema.GroupKind][]fieldpath.Path{
	{Kind: "Service"}: {
		fieldpath.New("spec", "clusterIP"), fieldpath.New("spec", "clusterIPs"), fieldpath.New("spec", "healthCheckNodePort"),
		fieldpath.MustParse(".spec.ports[0].nodePort"),
	},
	{Kind: "Pod"}: {fieldpath.New("spec", "nodeName")},
}

// matches reports whether p is at or below of; an index in of means each item.
func matches(p, of fieldpath.Path) bool {
	if len(p) < len(of) {
		return false
	}
	for i, step := range of {
		isItem := step.Kind != fieldpath.FieldStep && p[i].Kind != fieldpath.FieldStep
		if !isItem && !step.Equal(p[i]) {
			return false
		}
	}
	return true
}

type unlikeFinder struct {
	es    []managed.Entry
	our   int
	found []Unlike
}

func keysOf(a, b map[string]any) []string {
	var keys []string
	for k := range a {
		keys = append(keys, k)
	}
	for k := range b {
		if _, ok := a[k]; !ok {
			keys = append(keys, k)
		}
	}
	return keys
}

func (u *unlikeFinder) field(name string, live, created map[string]any, holders managed.Owners, at *fieldpath.Trail) {
	current, lives := live[name]
	before, made := created[name]
	u.values(Unlike{Live: current, New: before, Lives: lives, Made: made}, holders.Field(name), at.Field(name))
}

func (u *unlikeFinder) values(f Unlike, holders managed.Owners, at *fieldpath.Trail) {
	if f.Lives && f.Made && canonical.ExactDigest(f.Live) == canonical.ExactDigest(f.New) {
		return
	}
	live, isMap := f.Live.(map[string]any)
	created, wasMap := f.New.(map[string]any)
	if isMap && (wasMap || !f.Made && u.isShared(holders)) && len(live)+len(created) > 0 {
		for _, key := range keysOf(live, created) {
			u.field(key, live, created, holders, at)
		}
		return
	}
	liveList, isList := f.Live.([]any)
	createdList, wasList := f.New.([]any)
	if isList && wasList && u.items(liveList, createdList, holders, at) {
		return
	}
	f.Path, f.Ours = at.Path(), holders.Of(u.our).Holding != managed.HoldsNothing
	if !f.Ours && holders.HasOther(u.our) {
		f.Manager = holders.LastWriter(u.es, u.our)
	}
	u.found = append(u.found, f)
}

// isShared reports whether a manager owns something in a map, so that its fields must be looked at one by one.
func (u *unlikeFinder) isShared(holders managed.Owners) bool {
	return slices.ContainsFunc(holders, func(o managed.Owner) bool {
		return o.Holding == managed.HoldsHere && !o.Owned.IsLeaf()
	})
}

// items compares lists item by item if a manager names them by their keys; else it returns false.
func (u *unlikeFinder) items(live, created []any, holders managed.Owners, at *fieldpath.Trail) bool {
	within := holders.Items()
	names := managed.Named(within, u.our)
	if !names.AreKeyed() || holders.Of(u.our).IsWhole() {
		return false
	}
	find, matched := names.Finder(created), make([]bool, len(created))
	for i, item := range live {
		j, ok := find.Find(item)
		f := Unlike{Live: item, Lives: true, Made: ok}
		if ok {
			f.New, matched[j] = created[j], true
		}
		u.values(f, holders.Item(within, item, i), names.Step(item, i, at))
	}
	for j, item := range created {
		if !matched[j] {
			u.values(Unlike{New: item, Made: true}, make(managed.Owners, len(holders)), names.Step(item, j, at))
		}
	}
	return true
}

// Apart returns those of list whose fields are not those of others, nor above or below them.
func Apart(list, others []Unlike) []Unlike {
	return slices.DeleteFunc(slices.Clone(list), func(f Unlike) bool {
		return slices.ContainsFunc(others, func(o Unlike) bool { return f.Path.Overlaps(o.Path) })
	})
}

// WithoutTheirs returns those of list that are not the doing of another manager or of doc itself.
func WithoutTheirs(list []Unlike, doc map[string]any) []Unlike {
	return slices.DeleteFunc(slices.Clone(list), func(f Unlike) bool {
		wanted, ok := fieldpath.Get(doc, f.Path)
		return f.Manager != "" || f.Ours && ok && f.Lives && canonical.ExactDigest(wanted) == canonical.ExactDigest(f.Live)
	})
}

// LikeNew returns a copy of obj in which the fields of list are as in a new object.
func LikeNew(obj *unstructured.Unstructured, list []Unlike) *unstructured.Unstructured {
	out := obj.DeepCopy()
	for _, f := range list {
		switch {
		case !f.Made:
			fieldpath.Remove(out.Object, f.Path)
		case fieldpath.Set(out.Object, f.Path, f.New) != nil:
			out.Object = fieldpath.With(out.Object, f.Path, f.New)
		}
	}
	return out
}

// Claim returns doc with the live values of those fields of list that nobody owns; false if there are none. An apply of
// it makes them ours and changes none of them; the next apply of doc then removes them, and the API server derives them
// again.
func Claim(doc map[string]any, list []Unlike) (claim map[string]any, ok bool) {
	for _, f := range list {
		if f.Lives && !f.Ours {
			doc, ok = fieldpath.With(doc, f.Path, f.Live), true
		}
	}
	return doc, ok
}

// LivingIn returns those of list that nobody owns and that exist in live, with the values that they have there.
func LivingIn(list []Unlike, live *unstructured.Unstructured) (out []Unlike) {
	for _, f := range list {
		if !f.Ours {
			out = append(out, LivingAt([]fieldpath.Path{f.Path}, live)...)
		}
	}
	return out
}

// LivingAt returns the fields at paths that exist in live, as fields without an owner.
func LivingAt(paths []fieldpath.Path, live *unstructured.Unstructured) (out []Unlike) {
	for _, p := range paths {
		if value, ok := fieldpath.Get(live.Object, p); ok {
			out = append(out, Unlike{Path: p, Live: value, Lives: true})
		}
	}
	return out
}

// Owned returns the document that manager applied last, as far as the API server has kept it: an apply of it changes
// nothing.
func Owned(live *unstructured.Unstructured, manager string) map[string]any {
	owned, _ := managed.Owned(live, manager)
	doc := owned.Projection(live.Object, false)
	doc["apiVersion"], doc["kind"] = live.GetAPIVersion(), live.GetKind()
	return doc
}

// Abandoned returns what others have in maps in which we owned something, and that doc does not have any more: the
// fields of after, which is the object after an apply of doc. owned is what we applied last.
func Abandoned(owned, doc, after map[string]any) []fieldpath.Path {
	var paths []fieldpath.Path
	var walk func(at fieldpath.Path, owned, doc, after map[string]any)
	walk = func(at fieldpath.Path, owned, doc, after map[string]any) {
		for _, key := range slices.Sorted(maps.Keys(owned)) {
			had, isMap := owned[key].(map[string]any)
			left, remains := after[key].(map[string]any)
			want, wanted := doc[key]
			wantMap, _ := want.(map[string]any)
			switch p := append(slices.Clone(at), fieldpath.New(key)...); {
			case len(at) == 0 && (key == "metadata" || key == "status"): // others have their own there
			case !isMap || !remains || wanted && wantMap == nil:
			case wanted:
				walk(p, had, wantMap, left)
			default:
				paths = append(paths, leaves(p, left)...)
			}
		}
	}
	walk(nil, owned, doc, after)
	return paths
}

// leaves are the paths of what is in a map at p and no map itself.
func leaves(p fieldpath.Path, m map[string]any) (paths []fieldpath.Path) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		at := append(slices.Clone(p), fieldpath.New(key)...)
		if below, ok := m[key].(map[string]any); ok && len(below) > 0 {
			paths = append(paths, leaves(at, below)...)
			continue
		}
		paths = append(paths, at)
	}
	return paths
}

// WithoutEmptied returns doc without the maps that are empty in doc and not in live; false if there are none.
func WithoutEmptied(doc, live map[string]any) (rest map[string]any, found bool) {
	rest = make(map[string]any, len(doc))
	for k, value := range doc {
		want, isMap := value.(map[string]any)
		have, wasMap := live[k].(map[string]any)
		switch {
		case isMap && wasMap && len(want) == 0 && len(have) > 0:
			found = true
			continue
		case isMap && wasMap:
			below, some := WithoutEmptied(want, have)
			value, found = below, found || some
		}
		rest[k] = value
	}
	return rest, found
}

// HasDerived reports whether an object that doc was applied to may have values outside of metadata and status that the
// API server derived: it has a spec, or manager does not own all of the rest.
func HasDerived(u *unstructured.Unstructured, doc map[string]any, manager string) bool {
	if _, ok := doc["spec"]; ok {
		return true
	}
	owned, ok := managed.Owned(u, manager)
	for key, value := range u.Object {
		switch key {
		case "apiVersion", "kind", "metadata", "status":
			continue
		case "spec":
			return true
		}
		if node, known := owned.Field(key); !ok || !known || unowned(value, node, true) {
			return true
		}
	}
	return false
}

// Removable returns the paths of those of list that a new object does not have, that nobody owns and that are not in
// lists.
func Removable(list []Unlike) (paths []fieldpath.Path) {
	for _, f := range list {
		inList := slices.ContainsFunc(f.Path, func(s fieldpath.Step) bool { return s.Kind != fieldpath.FieldStep })
		if f.Lives && !f.Made && !f.Ours && f.Manager == "" && !inList {
			paths = append(paths, f.Path)
		}
	}
	return paths
}

// DescribeUnlike says on one line in which fields an object differs from a new one.
func DescribeUnlike(list []Unlike, v *View) string {
	parts := make([]string, 0, len(list))
	for k, f := range list {
		if k == 3 {
			parts = append(parts, "and more")
			break
		}
		parts = append(parts, v.Words.Path(f.Path.String()))
	}
	return strings.Join(parts, ", ")
}
