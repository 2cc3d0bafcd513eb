package config

// before checks the object that is made when an upstream is deleted.
func (v *validator) before() {
	b := v.Deletion.Before
	if b == nil {
		return
	}
	const at = "deletion.before"
	v.object(at, b.APIVersion, b.Kind)
	v.template(at, &b.Template, b.TemplateFile)
	v.targets(at, b.TargetNamespaces)
	v.required(at+".doneWhen", b.DoneWhen, "write a CEL expression over downstream that is true once it has done its work")
	if b.Timeout <= 0 {
		v.add(at+".timeout", "write a time such as 1h; what happens then is onTimeout's", "%s is no time to wait", b.Timeout)
	}
}
