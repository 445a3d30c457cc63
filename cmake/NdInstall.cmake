# libndplan (everything but cli), its headers, and a pkg-config file.
