//! Tests of TLS connections with HTTP/2, as providers use them.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;

/// A server that only speaks HTTP/2, and the certificate of the authority that signed its own.
fn encrypted(speech: Speech) -> (String, String) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&authority_key).unwrap().pem();
    let issuer = Issuer::new(params, authority_key);
    let key = KeyPair::generate().unwrap();
    let own = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let mut tls = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![own.der().clone()], PrivateKeyDer::Pkcs8(key.serialize_der().into()))
        .unwrap();
    tls.alpn_protocols = vec![b"h2".to_vec()];
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            send.send(listener.local_addr().unwrap().port()).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                if let Ok(stream) = TlsAcceptor::from(Arc::new(tls.clone())).accept(stream).await {
                    let _ = answer_over(stream, speech).await;
                }
            }
        });
    });
    (format!("https://localhost:{}/v1", receive.recv().unwrap()), authority)
}

async fn answer_over(
    stream: tokio_rustls::server::TlsStream<tokio::net::TcpStream>,
    speech: Speech,
) -> Result<(), h2::Error> {
    let mut connection = h2::server::handshake(stream).await?;
    while let Some(request) = connection.accept().await {
        let (_, mut respond) = request?;
        let head = ::http::Response::builder().header("content-type", "text/event-stream").body(()).unwrap();
        let mut body = respond.send_response(head, false)?;
        for event in speech.events(&["over ", "HTTP/2"], 3, 2) {
            body.send_data(event.into_bytes().into(), false)?;
        }
        body.send_data(Default::default(), true)?;
    }
    Ok(())
}

#[test]
fn the_ca_file_setting_allows_a_private_certificate_authority() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let speech = BOTH[0];
    let log = secrets::Log::start();
    let (address, authority) = encrypted(speech);
    let plain = Server::start(|_, _| Vec::new());
    let unknown = ModelSettings { base_url: Some(address), ..speech.settings(&plain) };
    let error = Bench::new(&unknown).ask().unwrap_err().to_string();
    assert!(error.contains("certificate") && error.contains("`model.ca-file`"), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("authority.pem");
    std::fs::write(&file, authority).unwrap();
    let bench = Bench::new(&ModelSettings { ca_file: Some(file), ..unknown });
    for _ in 0..2 {
        assert_eq!(bench.ask().unwrap().text, "over HTTP/2");
    }
    assert!(!log.text().contains(&KEY[3..]), "{}", log.text());
}
