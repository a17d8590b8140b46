npx countersign explain request.http --key service-1=service-1.public.pem
