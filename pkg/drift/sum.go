package drift

// sum returns P: the digest of the projection and of what the manager owns and is absent. An empty value that the API server does not
// store (args: []) stays owned; a writer that sets it later removes it from our entry, which changes P. If nothing owned is absent, P is
// Digest(v.projection(obj, owned)), which is built only if fields must be added or removed. Only then can it equal Desired.
func (v *View) sum(obj map[string]any, owned fields) Sum {
	e := encoders.Get().(*encoder)
	defer e.release()
	e.nulls = true
	switch {
	case owned.isLeaf():
		e.value(map[string]any{}) // nobody owns an object as a whole
	case len(v.Exclusive)+len(v.Initial)+len(v.Aside) > 0:
		e.value(v.projection(obj, owned))
		e.missing = true // possibly
	default:
		e.projectMap(obj, owned)
	}
	if e.missing {
		if absent := v.absent(obj, owned); len(absent) > 0 {
			e.value(map[string]any(absent))
		}
	}
	return e.sum()
}

// project writes the projection of live, and records whether something owned is missing.
func (e *encoder) project(live any, owned fields) {
	if owned.isLeaf() {
		e.value(live)
		return
	}
	switch live := live.(type) {
	case map[string]any:
		e.projectMap(live, owned)
	case []any:
		e.projectList(live, owned)
	default:
		e.missing = true
		e.value(live)
	}
}

func (e *encoder) projectMap(live map[string]any, owned fields) {
	from := len(e.todo)
	for key, below := range owned {
		below, ok := below.(map[string]any)
		if !ok || below == nil || key == ownDot {
			continue
		}
		name, ok := cutField(key)
		value, there := live[name]
		if !ok || !there {
			e.missing = true
			continue
		}
		e.todo = append(e.todo, pair{key: name, value: value, owned: below})
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
			items.markFound()
			e.project(item, below)
		}
	}
	e.buf = append(e.buf, 'e')
	e.missing = e.missing || !items.complete()
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
