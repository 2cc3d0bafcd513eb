package drift

// sum returns the digest of the projection. It is Digest(v.projection(obj, owned)) without building that, unless fields
// need to be put in or left out.
func (v *View) sum(obj map[string]any, owned fields) Sum {
	if len(v.Exclusive) > 0 || len(v.Initial) > 0 || owned.leaf() {
		return Digest(v.projection(obj, owned))
	}
	e := encoders.Get().(*encoder)
	defer e.release()
	e.projectMap(obj, owned)
	return e.sum()
}

// project writes what projecting live gives.
func (e *encoder) project(live any, owned fields) {
	if owned.leaf() {
		e.value(live)
		return
	}
	switch live := live.(type) {
	case map[string]any:
		e.projectMap(live, owned)
	case []any:
		e.projectList(live, owned)
	default:
		e.value(live)
	}
}

func (e *encoder) projectMap(live map[string]any, owned fields) {
	from := len(e.todo)
	for key, below := range owned {
		name, ok := cutField(key)
		if !ok {
			continue
		}
		value := live[name]
		if below, ok := below.(map[string]any); ok && below != nil && value != nil {
			e.todo = append(e.todo, pair{key: name, value: value, owned: below})
		}
	}
	to := e.sort(from)
	e.buf = append(e.buf, 'm')
	for i := from; i < to; i++ {
		next := e.todo[i]
		e.text('k', next.key)
		e.project(next.value, next.owned)
	}
	e.buf = append(e.buf, 'e')
	e.todo = e.todo[:from]
}

func (e *encoder) projectList(live []any, owned fields) {
	items := e.items()
	items.read(owned)
	e.buf = append(e.buf, 'l')
	for i, item := range live {
		if below, ok := items.of(item, i); ok {
			e.project(item, below)
		}
	}
	e.buf = append(e.buf, 'e')
	e.free = append(e.free, items)
}

func (e *encoder) items() *items {
	if n := len(e.free); n > 0 {
		it := e.free[n-1]
		e.free = e.free[:n-1]
		return it
	}
	return &items{}
}
