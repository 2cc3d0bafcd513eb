package config

// deletion checks what is done when an upstream is deleted, and that what it needs is there: what must happen while
// the upstream still exists needs a finalizer that holds it.
func (v *validator) deletion() {
	if v.Deletion.Wait {
		v.holds("deletion.wait is true")
	}
	b := v.Deletion.Before
	if b == nil {
		return
	}
	const at = "deletion.before"
	v.object(at, b.APIVersion, b.Kind)
	v.template(at, &b.Template, b.TemplateFile)
	v.targets(at, b.TargetNamespaces)
	v.required(at+".doneWhen", b.DoneWhen, "write a CEL expression over downstream that is true once it finished")
	if b.Timeout <= 0 {
		v.add(at+".timeout", "write a time such as 1h; onTimeout says what happens then", "%s is not a valid timeout", b.Timeout)
	}
	v.holds("deletion.before is given")
	v.recorded()
}

// holds wants the finalizer that holds an upstream while something is done.
func (v *validator) holds(because string) {
	if v.Conventions.Finalizer == "" && !v.elsewhere() {
		v.add("conventions.finalizer", "add a name of your own: it holds the upstream meanwhile", "it is missing, but %s", because)
	}
}

// recorded wants a place for the outcome of deletion.before. It is listed with the downstreams, as an item whose
// name no downstream can have: theirs hold no dot.
func (v *validator) recorded() {
	switch {
	case !*v.Status.Enabled:
		v.add("status.enabled", "leave it out, or leave out deletion.before",
			"it is false, but deletion.before is given, whose outcome is recorded in the upstream's status")
	case v.Status.Downstreams == "":
		v.add("status.downstreams", "add a path such as .status.downstreams",
			"it is missing, but deletion.before is given, whose outcome is recorded there")
	}
}
