declare module "multer" {
  import type { RequestHandler } from "express";

  export default function multer(): { any(): RequestHandler };
}
