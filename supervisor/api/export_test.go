package api

// Routes lists the endpoints as "METHOD /path".
func (s *Server) Routes() []string {
	var routes []string
	for _, r := range s.routes() {
		routes = append(routes, r.method+" "+r.path)
	}
	return routes
}
