package fieldpath

// Trail is a path as a linked list from the leaf up, for a walk: the path is only made if it is needed. nil is the
// root.
type Trail struct {
	Parent *Trail
	Step   Step
}

// Field returns the trail of a field below t.
func (t *Trail) Field(name string) *Trail { return &Trail{t, Step{Kind: FieldStep, Field: name}} }

// Index returns the trail of a list item below t, by its index.
func (t *Trail) Index(i int) *Trail { return &Trail{t, Step{Kind: IndexStep, Index: i}} }

// Item returns the trail of a list item below t, by its keys.
func (t *Trail) Item(keys map[string]string) *Trail {
	return &Trail{t, Step{Kind: SelectorStep, Selector: keys}}
}

// Path returns the path from the root.
func (t *Trail) Path() Path {
	if t == nil {
		return nil
	}
	return append(t.Parent.Path(), t.Step)
}
