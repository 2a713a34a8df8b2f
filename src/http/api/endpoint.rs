//! A path of the API and the methods that it answers.

use actix_web::{
    FromRequest, Handler, HttpRequest, Resource, Responder,
    guard::{self, Guard},
    http::Method,
    web,
};

use crate::http::api::problem;

/// The path of an endpoint, with its variables, as each of its requests knows it.
struct Route(&'static str);

/// The path of the endpoint that answers `request`. actix would match the path a second time.
pub(crate) fn route(request: &HttpRequest) -> Option<&'static str> {
    request.app_data().map(|Route(path)| *path)
}

/// A path and its handlers. Any other method is answered with 405 and an `Allow` header naming those it has.
pub(crate) struct Endpoint {
    path: &'static str,
    /// What the path registered after it answers in its stead.
    left: Vec<Method>,
    methods: Vec<Method>,
    resource: Resource,
}

impl Endpoint {
    /// A path that answers nothing yet.
    pub(crate) fn new(path: &'static str) -> Self {
        Self { path, left: Vec::new(), methods: Vec::new(), resource: web::resource(path).app_data(Route(path)) }
    }

    /// A path that leaves the methods `left` to the path registered after it, and counts them among those that it has.
    pub(crate) fn leaving(path: &'static str, left: &[Method]) -> Self {
        let mut endpoint = Self::new(path);
        endpoint.left = left.to_vec();
        for method in left {
            endpoint.resource = endpoint.resource.guard(guard::Not(guard::Method(method.clone())));
        }
        endpoint
    }

    /// Answers GET, and HEAD, for which the server leaves the body out (RFC 9110, 9.3.2).
    pub(crate) fn get<F, Args>(mut self, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        self.methods.extend([Method::GET, Method::HEAD]);
        self.route(guard::Any(guard::Get()).or(guard::Head()), handler)
    }

    /// Answers `method`.
    pub(crate) fn on<F, Args>(mut self, method: Method, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        self.methods.push(method.clone());
        self.route(guard::Method(method), handler)
    }

    fn route<F, Args>(mut self, guard: impl Guard + 'static, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        self.resource = self.resource.route(web::route().guard(guard).to(handler));
        self
    }

    /// The path, as the document of the API writes it.
    #[cfg(test)]
    pub(crate) fn path(&self) -> &'static str {
        self.path
    }

    /// The methods that the path answers.
    #[cfg(test)]
    pub(crate) fn methods(&self) -> &[Method] {
        &self.methods
    }

    /// The methods that `Allow` names.
    pub(crate) fn allow(&self) -> String {
        let methods: Vec<_> = self.left.iter().chain(&self.methods).map(Method::as_str).collect();
        methods.join(", ")
    }

    /// Makes the path part of an application.
    pub(crate) fn register(self, config: &mut web::ServiceConfig) {
        let allow = self.allow();
        let path = self.path;
        let refuse = move |request: HttpRequest| {
            let response = problem::method_not_allowed(request.method().as_str(), path, &allow);
            async move { response }
        };
        config.service(self.resource.default_service(web::to(refuse)));
    }
}
