//! A path of the API and its methods.

use std::future::ready;

use actix_web::{
    FromRequest, Handler, HttpRequest, Resource, Responder, ResponseError as _,
    guard::{self, Guard, GuardContext},
    http::Method,
    web,
};

use crate::{Error, http::server::problem, model::idempotency::HEADER};

/// Path of an endpoint, with its variables.
struct Route(&'static str);

/// Returns the path of the endpoint that handles `request`. actix would match the path a second
/// time.
pub(crate) fn route(request: &HttpRequest) -> Option<&'static str> {
    request.app_data().map(|Route(path)| *path)
}

/// A path and its handlers. Other methods get 405, with an `Allow` header that lists the path's
/// methods.
pub(crate) struct Endpoint {
    path: &'static str,
    /// Methods that a path registered later handles for the same URL.
    left: Vec<Method>,
    methods: Vec<Method>,
    resource: Resource,
}

impl Endpoint {
    /// Creates a path without methods.
    pub(crate) fn new(path: &'static str) -> Self {
        Self { path, left: Vec::new(), methods: Vec::new(), resource: web::resource(path).app_data(Route(path)) }
    }

    /// Creates a path that leaves the methods `left` to a path registered later. They count as
    /// methods of this path.
    pub(crate) fn leaving(path: &'static str, left: &[Method]) -> Self {
        let mut endpoint = Self::new(path);
        endpoint.left = left.to_vec();
        for method in left {
            endpoint.resource = endpoint.resource.guard(guard::Not(guard::Method(method.clone())));
        }
        endpoint
    }

    /// Handles GET and HEAD. For HEAD the server omits the body (RFC 9110, 9.3.2).
    pub(crate) fn get<F, Args>(mut self, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        self.methods.extend([Method::GET, Method::HEAD]);
        self.route(guard::Any(guard::Get()).or(guard::Head()), handler)
    }

    /// Handles `method`. Refuses an `Idempotency-Key`, whose sender relies on its effect.
    pub(crate) fn on<F, Args>(mut self, method: Method, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        let has_key = |context: &GuardContext<'_>| context.head().headers().contains_key(HEADER);
        let guard = guard::All(guard::Method(method.clone())).and(guard::fn_guard(has_key));
        self = self.route(guard, || ready(Error::invalid(HEADER, "this call does not support it").error_response()));
        self.on_idempotent(method, handler)
    }

    /// Handles `method`, with or without an `Idempotency-Key`.
    pub(crate) fn on_idempotent<F, Args>(mut self, method: Method, handler: F) -> Self
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

    /// The path, as in the OpenAPI document.
    #[cfg(test)]
    pub(crate) fn path(&self) -> &'static str {
        self.path
    }

    /// The methods with a handler.
    #[cfg(test)]
    pub(crate) fn methods(&self) -> &[Method] {
        &self.methods
    }

    /// Returns the value of the `Allow` header.
    pub(crate) fn allow(&self) -> String {
        let methods: Vec<_> = self.left.iter().chain(&self.methods).map(Method::as_str).collect();
        methods.join(", ")
    }

    /// Registers the path with an application.
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
