package validate

// checkDeletion checks what is done when an upstream is deleted, and that what it needs is there: what must happen
// while the upstream still exists needs a finalizer that holds it.
func checkDeletion(v *validator) {
	if v.Deletion.Wait {
		checkHolds(v, "deletion.wait is true")
	}
	b := v.Deletion.Before
	if b == nil {
		return
	}
	const at = "deletion.before"
	checkObject(v, at, b.APIVersion, b.Kind)
	checkTargets(v, at, b.TargetNamespaces)
	v.required(at+".doneWhen", b.DoneWhen, "write a CEL expression over downstream that is true once it finished")
	if b.Timeout <= 0 {
		v.Add(at+".timeout", "write a time such as 1h; onTimeout says what happens then",
			"%s is not a valid timeout", b.Timeout)
	}
	checkHolds(v, "deletion.before is given")
	checkRecorded(v)
}

// checkHolds wants the finalizer that holds an upstream while something is done.
func checkHolds(v *validator, because string) {
	if v.Conventions.Finalizer == "" && !v.unread {
		v.Add("conventions.finalizer", "add a name of your own: it holds the upstream meanwhile",
			"it is missing, but %s", because)
	}
}

// checkRecorded wants a place for the outcome of deletion.before. It is listed with the downstreams, as an item whose
// name no downstream can have: theirs hold no dot.
func checkRecorded(v *validator) {
	switch {
	case !*v.Status.Enabled:
		v.Add("status.enabled", "leave it out, or leave out deletion.before",
			"it is false, but deletion.before is given, whose outcome is recorded in the upstream's status")
	case v.Status.Downstreams == "":
		v.Add("status.downstreams", "add a path such as .status.downstreams",
			"it is missing, but deletion.before is given, whose outcome is recorded there")
	}
}
