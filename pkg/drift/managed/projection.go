package managed

// Projection returns the live values of the owned fields of obj, which it shares. A field that is owned but absent is
// nil if nils is true, else it is omitted.
func (f Fields) Projection(obj map[string]any, nils bool) map[string]any {
	if f.IsLeaf() {
		return map[string]any{} // nobody owns an object as a whole
	}
	return projector{nils: nils}.fields(obj, f)
}

// projector builds projections.
type projector struct{ nils bool }

func (p projector) value(live any, owned Fields) any {
	if owned.IsLeaf() {
		return live
	}
	switch live := live.(type) {
	case map[string]any:
		return p.fields(live, owned)
	case []any:
		return p.list(live, owned)
	default:
		return live // fields below a scalar: forged, or the value has changed its type
	}
}

func (p projector) fields(live map[string]any, owned Fields) map[string]any {
	out := make(map[string]any, len(owned))
	for key := range owned {
		name, isField := CutField(key)
		below, ok := owned.Below(key)
		if !isField || !ok {
			continue
		}
		if value, ok := live[name]; ok {
			out[name] = p.value(value, below)
		} else if p.nils {
			out[name] = nil
		}
	}
	return out
}

func (p projector) list(live []any, owned Fields) []any {
	items := owned.Items()
	out := make([]any, 0, min(len(live), len(owned)))
	for i, item := range live {
		if below, ok := items.Of(item, i); ok {
			out = append(out, p.value(item, below))
		}
	}
	return out
}
