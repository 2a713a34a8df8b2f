//! The manifests in `deploy/kubernetes`: checked against the schemas of Kubernetes, and against the
//! program.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

use crate::support::{Files, Ran, centile};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the paths of all manifests.
fn files() -> Vec<PathBuf> {
    let folder = fs::read_dir(root().join("deploy/kubernetes")).unwrap();
    folder.map(|entry| entry.unwrap().path()).collect()
}

/// Returns all objects by kind.
fn objects() -> BTreeMap<String, Value> {
    let mut objects = BTreeMap::new();
    for file in files() {
        for text in fs::read_to_string(file).unwrap().split("\n---\n") {
            let object: Value = serde_saphyr::from_str(text).unwrap();
            let kind = object["kind"].as_str().unwrap().to_owned();
            assert!(objects.insert(kind, object).is_none(), "two objects of a kind");
        }
    }
    objects
}

/// Checks manifests with the schemas of Kubernetes.
fn check(files: &[PathBuf]) -> Ran {
    Ran::of(Command::new(root().join("scripts/manifests.sh")).args(files))
}

#[test]
fn the_manifests_have_the_fields_of_kubernetes() {
    check(&files()).well();
    let scratch = Files::new();
    let text: String = files().iter().map(|file| fs::read_to_string(file).unwrap() + "---\n").collect();
    for (right, wrong) in [
        ("maxUnavailable: 0", "maxUnavailible: 0"),
        ("terminationGracePeriodSeconds", "terminationGracePeriod"),
        ("readinessProbe", "readynessProbe"),
        ("periodSeconds: 10", "periodSeconds: ten"),
        ("targetPort", "target_port"),
        ("minReplicas: 3", "minReplica: 3"),
        ("  maxUnavailable: 1", "  maxUnavailables: 1"),
        ("backoffLimit", "backofLimit"),
    ] {
        assert!(text.contains(right), "{right}");
        let file = scratch.write("wrong.yaml", text.replace(right, wrong));
        let ran = check(&[file]);
        assert_ne!(ran.code, Some(0), "{wrong} is accepted: {ran:?}");
    }
}

/// Returns the variables that a container sets.
fn variables(container: &Value) -> BTreeMap<&str, &str> {
    let variables = container["env"].as_array().into_iter().flatten();
    variables.map(|variable| (variable["name"].as_str().unwrap(), variable["value"].as_str().unwrap())).collect()
}

#[test]
fn the_manifests_fit_together_and_fit_the_program() {
    let objects = objects();
    let kinds: Vec<&String> = objects.keys().collect();
    assert_eq!(kinds, ["Deployment", "HorizontalPodAutoscaler", "Job", "PodDisruptionBudget", "Service"]);
    let deployment = &objects["Deployment"]["spec"];
    let labels = &deployment["template"]["metadata"]["labels"];
    for selector in [
        &deployment["selector"]["matchLabels"],
        &deployment["template"]["spec"]["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"],
        &objects["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        &objects["Service"]["spec"]["selector"],
    ] {
        assert_eq!(selector, labels);
    }
    assert_ne!(&objects["Job"]["spec"]["template"]["metadata"]["labels"], labels, "the Service must not find the job");
    let target = &objects["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"];
    assert_eq!((&target["kind"], &target["name"]), (&json!("Deployment"), &objects["Deployment"]["metadata"]["name"]));
    assert!(deployment["replicas"].is_null(), "each `apply` would undo the autoscaler");

    let image = json!(format!("registry.example/centile:{}", env!("CARGO_PKG_VERSION")));
    let help = Ran::of(centile().args(["serve", "--help"])).well();
    for (kind, command) in [("Deployment", "serve"), ("Job", "migrate")] {
        let pod = &objects[kind]["spec"]["template"]["spec"];
        let container = &pod["containers"][0];
        assert_eq!((&container["image"], &container["args"]), (&image, &json!([command])), "{kind}");
        assert_eq!(pod["securityContext"]["runAsUser"], 65_532, "the image's account");
        for name in variables(container).keys() {
            assert!(help.contains(&format!("[env: {name}=")), "{name} is no setting");
        }
    }
    let pod = &deployment["template"]["spec"];
    let container = &pod["containers"][0];
    let variables = variables(container);
    let seconds = |name: &str| variables[name].parse::<u64>().unwrap();
    let stop = seconds("CENTILE_DRAIN") + seconds("CENTILE_STOP_WITHIN") + 30;
    assert!(pod["terminationGracePeriodSeconds"].as_u64().unwrap() > stop, "SIGKILL would interrupt a stop");
    for (probe, path) in [("startupProbe", "/healthz"), ("readinessProbe", "/readyz"), ("livenessProbe", "/healthz")] {
        assert_eq!(container[probe]["httpGet"], json!({"path": path, "port": "http"}), "{probe}");
    }
    let readiness = &container["readinessProbe"];
    let noticed = readiness["failureThreshold"].as_u64().unwrap() * readiness["periodSeconds"].as_u64().unwrap();
    assert!(noticed < seconds("CENTILE_DRAIN"), "the drain is over before it is noticed");
    assert_eq!(container["ports"][0]["containerPort"], 8_080, "the image listens there");
}
